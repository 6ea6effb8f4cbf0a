-- The questions of tables_truth.py, written as an analyst would write them, before any tuning of the library.
-- Do not change a question because its answer is bad: add another question instead.
--
-- Before each question stand its name, its source (a private table with what is declared of it) and how its
-- groups are known: `one` group of all rows; `few` or `many` public groups; public groups most of which are
-- `empty`; `private` groups. Where the truth is not the question without HAVING, ORDER BY and LIMIT, it follows
-- after `-- truth`.

-- flights | flights | one
SELECT COUNT(*) AS n FROM flights;

-- number of planes | flights | one
SELECT COUNT(DISTINCT tailnum) AS n FROM flights;

-- destinations | flights | one
SELECT COUNT(DISTINCT dest) AS n FROM flights;

-- carriers | flights | one
SELECT COUNT(DISTINCT carrier) AS n FROM flights;

-- miles | flights | one
SELECT SUM(distance) AS miles FROM flights;

-- average delay | flights | one
SELECT AVG(dep_delay) AS delay FROM flights;

-- deviation of delays | flights | one
SELECT STDDEV_SAMP(dep_delay) AS dev FROM flights;

-- median air time | flights | one
SELECT MEDIAN(air_time) AS minutes FROM flights;

-- quartiles of delays | flights | one
SELECT QUANTILE_CONT(arr_delay, 0.25) AS q1, QUANTILE_CONT(arr_delay, 0.75) AS q3, QUANTILE_CONT(arr_delay,
    0.9) AS p90 FROM flights;

-- least and most miles | flights | one
SELECT MIN(distance) AS a, MAX(distance) AS b FROM flights;

-- very late | flights | one
SELECT COUNT(*) AS n FROM flights WHERE dep_delay > 60;

-- cancelled | flights | one
SELECT COUNT(*) AS n FROM flights WHERE dep_time IS NULL;

-- share that is late | flights | one
SELECT AVG(CASE WHEN dep_delay > 15 THEN 1.0 ELSE 0.0 END) AS late FROM flights;

-- miles per hour | flights | one
SELECT SUM(distance) / (SUM(air_time) / 60.0) AS mph FROM flights;

-- Hawaiian | flights | one
SELECT COUNT(*) AS n FROM flights WHERE carrier = 'HA';

-- to LAX in July | flights | one
SELECT COUNT(*) AS n, AVG(air_time) AS minutes FROM flights WHERE dest = 'LAX' AND month = 7;

-- on Christmas day | flights | one
SELECT COUNT(*) AS n FROM flights WHERE month = 12 AND day = 25;

-- count, average, median | flights | one
SELECT COUNT(*) AS n, AVG(arr_delay) AS delay, MEDIAN(arr_delay) AS middle FROM flights;

-- built before 1990 | flights | one
SELECT COUNT(*) AS n FROM flights JOIN planes USING (tailnum) WHERE planes.year < 1990;

-- average year flown | flights | one
SELECT AVG(p.year) AS built FROM flights f JOIN planes p ON f.tailnum = p.tailnum;

-- average seats flown | flights | one
SELECT AVG(p.seats) AS seats FROM flights f JOIN planes p ON f.tailnum = p.tailnum;

-- seats flown | flights | one
SELECT SUM(p.seats) AS seats FROM flights f JOIN planes p ON f.tailnum = p.tailnum;

-- delay in the rain | flights | one
SELECT COUNT(*) AS n, AVG(f.dep_delay) AS delay FROM flights f JOIN weather w ON f.origin = w.origin AND
    f.time_hour = w.time_hour WHERE w.precip > 0;

-- by airport name | flights | empty
SELECT a.name, COUNT(*) AS n FROM flights f JOIN airports a ON f.dest = a.faa GROUP BY a.name;

-- by airport code, with delay | flights | empty
SELECT a.faa, COUNT(*) AS n, AVG(f.arr_delay) AS delay FROM flights f JOIN airports a ON f.dest = a.faa
    GROUP BY a.faa;

-- by time zone of the airport | flights | few
SELECT a.tzone, COUNT(*) AS n FROM flights f JOIN airports a ON f.dest = a.faa GROUP BY a.tzone;

-- by airline name | flights | few
SELECT l.name, COUNT(*) AS n FROM flights f JOIN airlines l ON f.carrier = l.carrier GROUP BY l.name;

-- delay by airline name | flights | few
SELECT l.name, AVG(f.arr_delay) AS delay FROM flights f JOIN airlines l USING (carrier) GROUP BY l.name;

-- by manufacturer | flights | few
SELECT p.manufacturer, COUNT(*) AS n FROM flights f JOIN planes p USING (tailnum) GROUP BY 1;

-- by engine | flights | few
SELECT p.engine, COUNT(*) AS n, SUM(f.distance) AS miles FROM flights f JOIN planes p USING (tailnum) GROUP
    BY p.engine;

-- by year of construction | flights | few
SELECT p.year, COUNT(*) AS n FROM flights f JOIN planes p ON f.tailnum = p.tailnum GROUP BY p.year;

-- airports far away | flights | empty
SELECT a.name, COUNT(*) AS n, COUNT(DISTINCT f.tailnum) AS planes FROM flights f JOIN airports a ON f.dest =
    a.faa WHERE a.tz <= -8 GROUP BY a.name;

-- by origin | flights | private
SELECT origin, COUNT(*) AS n FROM flights GROUP BY origin;

-- by carrier | flights | private
SELECT carrier, COUNT(*) AS n FROM flights GROUP BY carrier;

-- by month | flights | private
SELECT month, COUNT(*) AS n FROM flights GROUP BY month ORDER BY 1;

-- by destination | flights | private
SELECT dest, COUNT(*) AS n FROM flights GROUP BY dest;

-- by hour | flights | private
SELECT hour, COUNT(*) AS n FROM flights GROUP BY hour;

-- JFK by carrier | flights | private
SELECT carrier, COUNT(*) AS n, AVG(dep_delay) AS delay, MEDIAN(dep_delay) AS middle FROM flights WHERE
    origin = 'JFK' GROUP BY carrier ORDER BY n DESC;

-- top ten destinations | flights | private
SELECT dest, COUNT(*) AS n FROM flights GROUP BY dest ORDER BY n DESC LIMIT 10;

-- busy destinations | flights | private
SELECT dest, COUNT(*) AS n, AVG(arr_delay) AS delay FROM flights GROUP BY dest HAVING COUNT(*) > 5000;

-- planes by carrier | flights | private
SELECT carrier, COUNT(DISTINCT tailnum) AS planes FROM flights GROUP BY carrier;

-- destinations by carrier | flights | private
SELECT carrier, COUNT(DISTINCT dest) AS places FROM flights GROUP BY carrier;

-- miles by carrier and origin | flights | private
SELECT carrier, origin, SUM(distance) AS miles FROM flights GROUP BY carrier, origin;

-- delay by hour of departure | flights | private
SELECT hour, AVG(dep_delay) AS delay, STDDEV_SAMP(dep_delay) AS dev FROM flights GROUP BY hour;

-- by day | flights | private
SELECT CAST(time_hour AS DATE) AS day, COUNT(*) AS n FROM flights GROUP BY 1;

-- by week | flights | private
SELECT date_trunc('week', time_hour) AS week, COUNT(*) AS n, AVG(dep_delay) AS delay FROM flights GROUP BY
    1;

-- by origin, listed | listed | few
SELECT origin, COUNT(*) AS n FROM flights GROUP BY origin;

-- by carrier, listed | listed | few
SELECT carrier, COUNT(*) AS n FROM flights GROUP BY carrier;

-- JFK by carrier, listed | listed | few
SELECT carrier, COUNT(*) AS n, AVG(dep_delay) AS delay, MEDIAN(dep_delay) AS middle FROM flights WHERE
    origin = 'JFK' GROUP BY carrier ORDER BY n DESC;

-- by destination, listed | listed | empty
SELECT dest, COUNT(*) AS n FROM flights GROUP BY dest;

-- by carrier and month | listed | many
SELECT carrier, month(time_hour) AS m, COUNT(*) AS n FROM flights GROUP BY 1, 2;

-- miles by origin and hour | listed | many
SELECT origin, hour(time_hour) AS h, SUM(distance) AS miles, COUNT(*) AS n FROM flights GROUP BY 1, 2;

-- delay by carrier and weekday | listed | many
SELECT carrier, isodow(time_hour) AS weekday, AVG(arr_delay) AS delay FROM flights GROUP BY 1, 2;

-- by month of the date | flights | few
SELECT month(time_hour) AS m, COUNT(*) AS n, AVG(dep_delay) AS delay FROM flights GROUP BY 1 ORDER BY 1;

-- by weekday | flights | few
SELECT dayname(time_hour) AS weekday, COUNT(*) AS n FROM flights GROUP BY 1;

-- by part of the day | flights | few
SELECT CASE WHEN hour < 12 THEN 'morning' WHEN hour < 18 THEN 'afternoon' ELSE 'evening' END AS part,
    COUNT(*) AS n, AVG(arr_delay) AS delay FROM flights GROUP BY 1;

-- three destinations | flights | few
SELECT dest, COUNT(*) AS n, MEDIAN(air_time) AS minutes FROM flights WHERE dest IN ('LAX', 'SFO', 'BOS')
    GROUP BY dest;

-- late by origin | listed | few
SELECT origin, COUNT(*) FILTER (WHERE dep_delay > 30) AS late, COUNT(dep_delay) AS flown, 100.0 * COUNT(*)
    FILTER (WHERE dep_delay > 30) / COUNT(dep_delay) AS percent FROM flights GROUP BY origin;

-- made up by length | flights | few
SELECT CASE WHEN distance < 500 THEN 'short' WHEN distance < 1500 THEN 'middle' ELSE 'long' END AS length,
    AVG(dep_delay - arr_delay) AS made_up FROM flights GROUP BY 1;

-- by origin, δ = 0 | flights, δ = 0 | few
SELECT origin, COUNT(*) AS n FROM flights WHERE origin IN ('EWR', 'JFK', 'LGA') GROUP BY origin;

-- flights of a plane | flights | one
WITH p AS (SELECT tailnum, COUNT(*) AS n FROM flights GROUP BY tailnum) SELECT AVG(n) AS n FROM p;

-- busy planes | flights | one
WITH p AS (SELECT tailnum, COUNT(*) AS n FROM flights GROUP BY tailnum) SELECT COUNT(*) AS planes FROM p
    WHERE n > 100;

-- worst delay of a plane | flights | one
SELECT AVG(worst) AS worst, MEDIAN(worst) AS middle FROM (SELECT tailnum, MAX(dep_delay) AS worst FROM
    flights GROUP BY tailnum) AS p;

-- long flights of a plane, by carrier | listed | few
WITH p AS (SELECT tailnum, carrier, SUM(distance) AS miles FROM flights GROUP BY tailnum, carrier) SELECT
    carrier, AVG(miles) AS miles, COUNT(*) AS planes FROM p GROUP BY carrier;

-- to airports in the mountains | flights | one
SELECT COUNT(*) AS n FROM flights WHERE dest IN (SELECT faa FROM airports WHERE alt > 4000);

-- by an airport that exists | flights | one
SELECT AVG(distance) AS miles FROM flights f WHERE EXISTS (SELECT 1 FROM airports a WHERE a.faa = f.dest);

-- shares of origins | listed | few
SELECT origin, 100.0 * COUNT(*) / SUM(COUNT(*)) OVER () AS percent FROM flights GROUP BY origin;

-- carriers above a thousand | listed | few
WITH c AS (SELECT carrier, COUNT(*) AS n, AVG(arr_delay) AS delay FROM flights GROUP BY carrier) SELECT
    carrier, n, delay FROM c WHERE n > 1000;
-- truth
SELECT carrier, COUNT(*) AS n, AVG(arr_delay) AS delay FROM flights GROUP BY carrier;

-- delays that go together | flights | one
SELECT CORR(dep_delay, arr_delay) AS r FROM flights;

-- usual hour | flights | one
SELECT MODE(hour) AS h FROM flights;

-- first and last day | flights | one
SELECT MIN(CAST(time_hour AS DATE)) AS a, MAX(CAST(time_hour AS DATE)) AS b FROM flights;

-- origins with a total | listed | few
SELECT origin, COUNT(*) AS n FROM flights GROUP BY ROLLUP (origin);

-- airports asked by RIGHT JOIN | flights | empty
SELECT a.name, COUNT(f.dest) AS n FROM flights f RIGHT JOIN airports a ON f.dest = a.faa GROUP BY a.name;

-- tail numbers of one kind | flights | one
SELECT COUNT(*) AS n FROM flights WHERE regexp_matches(tailnum, '^N[0-9]+JB$');

-- average year | planes | one
SELECT AVG(year) AS built FROM planes;

-- average seats | planes | one
SELECT AVG(seats) AS seats FROM planes;

-- average seats, δ = 0 | planes, δ = 0 | one
SELECT AVG(seats) AS seats FROM planes;

-- oldest and newest | planes | one
SELECT MIN(year) AS oldest, MAX(year) AS newest FROM planes;

-- planes by manufacturer | planes | private
SELECT manufacturer, COUNT(*) AS n, AVG(seats) AS seats FROM planes GROUP BY manufacturer;

-- people | people | one
SELECT COUNT(*) AS n, AVG(income) AS income FROM people;

-- incomes by city | people | private
SELECT city, COUNT(*) AS n, AVG(income) AS income, MEDIAN(income) AS middle FROM people GROUP BY city;

-- members by age | people | few
SELECT CASE WHEN age < 30 THEN 'young' WHEN age < 60 THEN 'middle' ELSE 'old' END AS band, COUNT(*) AS n,
    AVG(CASE WHEN member THEN 1 ELSE 0 END) AS members FROM people GROUP BY 1;

-- incomes added up | people | one
SELECT SUM(income) AS income FROM people WHERE age >= 18;

-- ages, each row a unit | people, each row | private
SELECT city, COUNT(*) AS n, AVG(age) AS age FROM people GROUP BY city;

-- joined by month, each row a unit | people, each row | few
SELECT month(joined) AS m, COUNT(*) AS n, SUM(income) AS income FROM people GROUP BY 1;

-- tail 1.2: all rows | tail 1.2 | one
SELECT COUNT(*) AS n FROM orders;

-- tail 1.2: by group | tail 1.2 | private
SELECT grp, COUNT(*) AS n FROM orders GROUP BY grp;

-- tail 1.2: by listed group | tail 1.2 | few
SELECT grp, COUNT(*) AS n FROM orders WHERE grp IN ('g00', 'g01', 'g02', 'g03', 'g04', 'g05', 'g06', 'g07',
    'g08', 'g09', 'g10', 'g11') GROUP BY grp;

-- tail 1.2: sum by group | tail 1.2 | private
SELECT grp, SUM(amount) AS amount FROM orders GROUP BY grp;

-- tail 1.2: average and median by group | tail 1.2 | private
SELECT grp, COUNT(*) AS n, AVG(amount) AS mean, MEDIAN(amount) AS middle FROM orders GROUP BY grp;

-- tail 1.2: sum and average | tail 1.2 | one
SELECT SUM(amount) AS amount, AVG(amount) AS mean FROM orders;

-- tail 1.2: average score | tail 1.2 | one
SELECT AVG(score) AS score, STDDEV_SAMP(score) AS dev FROM orders;

-- tail 1.2: large amounts by month | tail 1.2 | few
SELECT month(day) AS m, COUNT(*) AS n FROM orders WHERE amount > 100 GROUP BY 1 ORDER BY 1;

-- tail 1.2: units by group | tail 1.2 | private
SELECT grp, COUNT(DISTINCT customer) AS who FROM orders GROUP BY grp;

-- tail 2: all rows | tail 2 | one
SELECT COUNT(*) AS n FROM visits;

-- tail 2: by group | tail 2 | private
SELECT grp, COUNT(*) AS n FROM visits GROUP BY grp;

-- tail 2: by listed group | tail 2 | few
SELECT grp, COUNT(*) AS n FROM visits WHERE grp IN ('g00', 'g01', 'g02', 'g03', 'g04', 'g05', 'g06', 'g07',
    'g08', 'g09', 'g10', 'g11') GROUP BY grp;

-- tail 2: sum by group | tail 2 | private
SELECT grp, SUM(amount) AS amount FROM visits GROUP BY grp;

-- tail 2: average and median by group | tail 2 | private
SELECT grp, COUNT(*) AS n, AVG(amount) AS mean, MEDIAN(amount) AS middle FROM visits GROUP BY grp;

-- tail 2: sum and average | tail 2 | one
SELECT SUM(amount) AS amount, AVG(amount) AS mean FROM visits;

-- tail 2: average score | tail 2 | one
SELECT AVG(score) AS score, STDDEV_SAMP(score) AS dev FROM visits;

-- tail 2: large amounts by month | tail 2 | few
SELECT month(day) AS m, COUNT(*) AS n FROM visits WHERE amount > 100 GROUP BY 1 ORDER BY 1;

-- tail 2: units by group | tail 2 | private
SELECT grp, COUNT(DISTINCT patient) AS who FROM visits GROUP BY grp;
