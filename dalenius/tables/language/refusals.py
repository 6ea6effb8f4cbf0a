"""What a query may not say: each clause with why, and with a rewrite that works. The one list of them.

`docs/sql.md` prints it, and a test runs every rewrite. The examples are about these tables, of which the unit
is a patient and `wards` is public:

    visits(patient_id, age, ward, day, cost)    stays(patient_id, nights)    wards(ward, region)
"""

from __future__ import annotations

from dataclasses import dataclass

from dalenius.errors import Unsupported


@dataclass(frozen=True)
class Refusal:
    """A clause that is refused. `example` is refused; `instead` is not."""

    clause: str
    why: str
    rewrite: str
    example: str
    instead: str


def refuse(clause: str, detail: str = "") -> Unsupported:
    """The error for a clause of the list; `detail` is the part of the query that is meant."""
    refusal = REFUSALS[clause]
    shown = f"{clause} ({detail})" if detail else clause
    return Unsupported(f"{shown} is refused: {refusal.why}.", remedy=refusal.rewrite)


_LIST = (
    Refusal(
        "SELECT of rows",
        "a private answer is made of aggregates; a row would show somebody's record",
        "Ask for aggregates, such as SELECT ward, COUNT(*) FROM visits GROUP BY ward.",
        "SELECT age FROM visits",
        "SELECT age, COUNT(*) FROM visits GROUP BY age",
    ),
    Refusal(
        "SELECT DISTINCT without the unit",
        "whether a value is there may hang on one unit alone",
        "Count with COUNT(DISTINCT x), or add the column of the unit to the SELECT DISTINCT list.",
        "SELECT COUNT(*) FROM (SELECT DISTINCT ward FROM visits)",
        "SELECT COUNT(DISTINCT ward) FROM visits",
    ),
    Refusal(
        "GROUP BY without the unit in a subquery",
        "a row of the subquery would mix the records of many units",
        "Add the column of the unit to GROUP BY in the subquery; or read the subquery alone, without a"
        " JOIN, as an"
        " answer of which the rest is computed.",
        "SELECT AVG(n) FROM (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward) JOIN wards USING (ward)",
        "SELECT AVG(n) FROM (SELECT patient_id, ward, COUNT(*) AS n FROM visits GROUP BY patient_id, ward)",
    ),
    Refusal(
        "JOIN or UNION of an answer",
        "what is computed from an answer reads the answer alone",
        "Join before the aggregates, or use a window over the groups, such as SUM(n) OVER ().",
        "SELECT n FROM (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward) WHERE ward IN (SELECT ward FROM"
        " wards)",
        "SELECT ward, n / SUM(n) OVER () AS share FROM (SELECT ward, COUNT(*) AS n FROM visits GROUP BY"
        " ward)",
    ),
    Refusal(
        "window not partitioned by the unit",
        "a row would depend on the records of other units",
        "Add the column of the unit to PARTITION BY.",
        "SELECT AVG(r) FROM (SELECT RANK() OVER (PARTITION BY ward ORDER BY age) AS r FROM visits)",
        "SELECT AVG(r) FROM (SELECT RANK() OVER (PARTITION BY patient_id ORDER BY age) AS r FROM visits)",
    ),
    Refusal(
        "window in a grouped or outermost SELECT",
        "windows are computed on rows of a unit, or on the groups of an answer",
        "Compute the window in a subquery and aggregate outside it, or over the groups of the answer.",
        "SELECT patient_id, AVG(n) FROM (SELECT patient_id, COUNT(*) AS n FROM visits GROUP BY patient_id"
        " QUALIFY"
        " RANK() OVER (ORDER BY COUNT(*)) < 3) GROUP BY patient_id",
        "SELECT ward, COUNT(*) AS n, RANK() OVER (ORDER BY COUNT(*) DESC) AS place FROM visits GROUP BY ward",
    ),
    Refusal(
        "window frame by RANGE, GROUPS or an expression",
        "such frames fail on some values, and a query may not fail on data",
        "Use ROWS BETWEEN with whole numbers, UNBOUNDED or CURRENT ROW.",
        "SELECT AVG(s) FROM (SELECT SUM(cost) OVER (PARTITION BY patient_id ORDER BY age RANGE BETWEEN 1"
        " PRECEDING AND CURRENT ROW) AS s FROM visits)",
        "SELECT AVG(s) FROM (SELECT SUM(cost) OVER (PARTITION BY patient_id ORDER BY age ROWS BETWEEN 1"
        " PRECEDING AND CURRENT ROW) AS s FROM visits)",
    ),
    Refusal(
        "JOIN of private tables without the unit",
        "a row would mix the records of two units",
        "Join private tables USING the column of the unit, or ON their columns of the unit being equal.",
        "SELECT COUNT(*) FROM visits AS v JOIN stays AS s ON v.age = s.nights",
        "SELECT COUNT(*) FROM visits AS v JOIN stays AS s ON v.patient_id = s.patient_id AND age > nights",
    ),
    Refusal(
        "FULL, ASOF or POSITIONAL join",
        "a row without a match on one side, or with the nearest of many, may belong to no unit or to several",
        "Use JOIN, LEFT JOIN, RIGHT JOIN, SEMI JOIN or ANTI JOIN with ON or USING.",
        "SELECT COUNT(nights) FROM stays FULL JOIN visits USING (patient_id)",
        "SELECT COUNT(nights) FROM stays RIGHT JOIN visits USING (patient_id)",
    ),
    Refusal(
        "public table LEFT JOIN private table",
        "a row without a match would belong to no unit, and count all the same",
        "Count a column of the private table, as in COUNT(age), and group by columns of the public one: all"
        " groups are shown, empty ones with them.",
        "SELECT ward, COUNT(*) FROM wards LEFT JOIN visits USING (ward) GROUP BY ward",
        "SELECT ward, COUNT(age) FROM wards LEFT JOIN visits USING (ward) GROUP BY ward",
    ),
    Refusal(
        "query without a private table",
        "there is nothing to protect in it",
        "Name the private table in FROM, and ask the public table directly otherwise.",
        "SELECT COUNT(*) FROM wards",
        "SELECT ward, COUNT(*) FROM visits JOIN wards USING (ward) GROUP BY ward",
    ),
    Refusal(
        "tables with different units together",
        "a row must belong to one unit, of one kind",
        "Join with USING the unit, or ask about each table alone.",
        "SELECT COUNT(*) FROM (SELECT ward FROM visits UNION ALL SELECT ward FROM wards)",
        "SELECT COUNT(*) FROM (SELECT ward FROM visits UNION ALL SELECT ward FROM visits WHERE age > 65)",
    ),
    Refusal(
        "combining rows where each row is a unit",
        "every row is a unit of its own, and one row may count only once",
        "Leave it out, name the unit's column with Unit(…, column=…), or join a public table on equal"
        " columns.",
        "SELECT COUNT(*) FROM (SELECT ward FROM each_row UNION ALL SELECT ward FROM each_row)",
        "SELECT COUNT(*) FROM (SELECT ward FROM each_row)",
    ),
    Refusal(
        "LIMIT in a subquery",
        "which rows remain would depend on other units",
        "Leave LIMIT to the outermost query, or number the rows of each unit with ROW_NUMBER() OVER"
        " (PARTITION"
        " BY the unit ORDER BY …) and keep the first.",
        "SELECT AVG(age) FROM (SELECT age FROM visits ORDER BY day LIMIT 10)",
        "SELECT AVG(age) FROM (SELECT age FROM visits QUALIFY ROW_NUMBER() OVER (PARTITION BY patient_id"
        " ORDER BY day) <= 10)",
    ),
    Refusal(
        "subquery inside an expression",
        "a row would depend on the records of other units, or the answer on a number that is not private",
        "Use IN or EXISTS with a public table or with the unit, and = between what is inside and outside; or"
        " join with the subquery on the unit.",
        "SELECT COUNT(*) FROM visits WHERE age > (SELECT AVG(age) FROM visits)",
        "SELECT COUNT(*) FROM visits WHERE ward IN (SELECT ward FROM wards WHERE region = 'north') AND"
        " patient_id IN (SELECT patient_id FROM stays WHERE nights > 2)",
    ),
    Refusal(
        "UNION, INTERSECT or EXCEPT",
        "whether a row stays would depend on other units",
        "Use UNION ALL.",
        "SELECT COUNT(*) FROM (SELECT age FROM visits UNION SELECT age FROM visits)",
        "SELECT COUNT(*) FROM (SELECT age FROM visits UNION ALL SELECT age FROM visits)",
    ),
    Refusal(
        "UNION ALL of answers",
        "one question has one GROUP BY",
        "Ask two questions, or put UNION ALL in a subquery and aggregate outside.",
        "SELECT COUNT(*) FROM visits UNION ALL SELECT COUNT(*) FROM stays",
        "SELECT COUNT(*) FROM (SELECT patient_id FROM visits UNION ALL SELECT patient_id FROM stays)",
    ),
    Refusal(
        "GROUPING SETS, ROLLUP or CUBE",
        "margins are added up from the groups of an answer, not from rows within units",
        "Use them in the outermost query, or UNION ALL of one subquery for each set of keys.",
        "SELECT AVG(n) FROM (SELECT patient_id, ward, COUNT(*) AS n FROM visits GROUP BY patient_id, ROLLUP"
        " (ward))",
        "SELECT ward, urgent, COUNT(*), AVG(cost), GROUPING(ward) FROM visits GROUP BY CUBE (ward, urgent)",
    ),
    Refusal(
        "COUNT(DISTINCT …) with ROLLUP, CUBE or GROUPING SETS",
        "a value or a unit that is in several groups would count several times in their sum",
        "Ask for COUNT(DISTINCT …) of each set of keys by itself.",
        "SELECT ward, COUNT(DISTINCT age) FROM visits GROUP BY ROLLUP (ward)",
        "SELECT ward, COUNT(DISTINCT age) FROM visits GROUP BY ward",
    ),
    Refusal(
        "GROUP BY the unit in the outermost query",
        "each group would be one unit, and no group of one unit is ever shown",
        "Group by the unit in a subquery and aggregate outside it, or list the groups as public keys.",
        "SELECT patient_id, COUNT(*) FROM visits GROUP BY patient_id",
        "SELECT AVG(n) FROM (SELECT patient_id, COUNT(*) AS n FROM visits GROUP BY patient_id)",
    ),
    Refusal(
        "function that is not a function of its arguments",
        "an answer must depend on the data, the query and nothing else",
        "Write the value you mean, such as DATE '2024-12-31', in its place.",
        "SELECT COUNT(*) FROM visits WHERE day < CURRENT_DATE",
        "SELECT COUNT(*) FROM visits WHERE day < DATE '2024-12-31'",
    ),
    Refusal(
        "function that is not known",
        "only functions that never fail, whatever the data, are allowed",
        "Use a function of the list in docs/sql.md, or add the column to the source.",
        "SELECT AVG(soundex(ward)) FROM visits",
        "SELECT AVG(length(ward)) FROM visits",
    ),
    Refusal(
        "regular expression",
        "only patterns of RE2, which DuckDB has, are matched without errors and in linear time",
        "Write a pattern without references back and lookarounds, or use LIKE, starts_with, ends_with or"
        " contains.",
        "SELECT COUNT(*) FROM visits WHERE regexp_matches(ward, '(A)\\1')",
        "SELECT COUNT(*) FROM visits WHERE regexp_matches(ward, '^A+$')",
    ),
    Refusal(
        "function outside aggregates that is not known",
        "what surrounds aggregates is computed on the released answer, by a shorter list of functions",
        "Group by that expression, in a subquery where needed.",
        "SELECT strftime(day, '%Y'), COUNT(*) FROM visits GROUP BY day",
        "SELECT strftime(day, '%Y'), COUNT(*) FROM visits GROUP BY strftime(day, '%Y')",
    ),
    Refusal(
        "aggregate that depends on the order of rows",
        "rows have no order, and one record's value would be shown as it is",
        "Use MIN, MAX, MEDIAN or COUNT by group.",
        "SELECT any_value(ward) FROM visits",
        "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward ORDER BY n DESC LIMIT 1",
    ),
    Refusal(
        "MODE beside another aggregate",
        "it is chosen by the counts of each value, which are asked for by themselves",
        "Ask for MODE(x) alone, by group or not; or for COUNT(*) by group and value, and order by it.",
        "SELECT MODE(ward), COUNT(*) FROM visits",
        "SELECT urgent, MODE(ward) FROM visits GROUP BY urgent",
    ),
    Refusal(
        "aggregate that is not known",
        "only aggregates that counts, sums, squares and quantiles of rows give are answered",
        "Use COUNT, SUM, AVG, VAR_SAMP, STDDEV_SAMP, MIN, MAX, MEDIAN, quantile_cont, CORR, COVAR_POP or"
        " REGR_SLOPE of expressions.",
        "SELECT skewness(age) FROM visits",
        "SELECT AVG(age * age * age) FROM visits",
    ),
    Refusal(
        "aggregate that is not known within a unit",
        "only COUNT, SUM, AVG, MIN, MAX and MEDIAN within a unit are the same in whatever order rows come",
        "Write it with AVG, such as AVG(x * x) - AVG(x) * AVG(x) for VAR_POP(x).",
        "SELECT AVG(v) FROM (SELECT patient_id, VAR_POP(age) AS v FROM visits GROUP BY patient_id)",
        "SELECT AVG(v) FROM (SELECT patient_id, AVG(age * age) - AVG(age) * AVG(age) AS v FROM visits"
        " GROUP BY patient_id)",
    ),
    Refusal(
        "DISTINCT in an aggregate other than COUNT",
        "which of the equal values count would depend on other units",
        "Take the distinct values of each unit in a subquery: SELECT DISTINCT unit, x.",
        "SELECT SUM(DISTINCT age) FROM visits",
        "SELECT SUM(age) FROM (SELECT DISTINCT patient_id, age FROM visits)",
    ),
    Refusal(
        "aggregate of texts or dates",
        "sums are of numbers, MIN, MAX and quantiles of numbers or dates: a text would be one record's own",
        "Count by group, or take MIN, MAX or AVG of a number such as length(x) or epoch(x).",
        "SELECT MAX(ward) FROM visits",
        "SELECT MAX(length(ward)), AVG(epoch(day)) FROM visits",
    ),
    Refusal(
        "aggregate inside an aggregate",
        "an aggregate is of rows",
        "Compute the inner one in a subquery that groups by the unit.",
        "SELECT AVG(COUNT(*)) FROM visits GROUP BY ward",
        "SELECT AVG(n) FROM (SELECT patient_id, COUNT(*) AS n FROM visits GROUP BY patient_id)",
    ),
    Refusal(
        "SELECT DISTINCT of an answer",
        "groups are distinct already",
        "Leave DISTINCT out.",
        "SELECT DISTINCT ward, COUNT(*) FROM visits GROUP BY ward",
        "SELECT ward, COUNT(*) FROM visits GROUP BY ward",
    ),
    Refusal(
        "table function, file or sample in FROM",
        "only declared tables have a known unit",
        "Name a table that was declared.",
        "SELECT COUNT(*) FROM read_csv('visits.csv')",
        "SELECT COUNT(*) FROM visits",
    ),
    Refusal(
        "LATERAL, UNNEST, PIVOT, VALUES or a recursive CTE",
        "it is not known to keep every row with its unit",
        "Use plain SELECT, JOIN, GROUP BY and UNION ALL.",
        "SELECT COUNT(*) FROM (VALUES (1), (2))",
        "SELECT COUNT(*) FROM visits",
    ),
    Refusal(
        "statement other than one SELECT",
        "a question reads; it changes nothing and asks one thing",
        "Send one SELECT at a time.",
        "DELETE FROM visits",
        "SELECT COUNT(*) FROM visits",
    ),
    Refusal(
        "clause that is not known",
        "it is not known to keep every row with its unit",
        "Leave it out; docs/sql.md lists what is allowed.",
        "SELECT COUNT(*) FROM visits WHERE age = ?",
        "SELECT COUNT(*) FROM visits WHERE age = 30",
    ),
    Refusal(
        "pattern or format that is not a literal",
        "it must be known before data is read",
        "Write it in quotes.",
        "SELECT COUNT(*) FROM visits WHERE 'A' LIKE ward",
        "SELECT COUNT(*) FROM visits WHERE ward LIKE 'A'",
    ),
)

REFUSALS = {refusal.clause: refusal for refusal in _LIST}
