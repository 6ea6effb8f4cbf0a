"""The functions by which an analyst's role charges a ledger in PostgreSQL that it may not write to.

The owner installs them (`Ledger.grant`). The role may read the tables and execute `append_entry`, nothing
else. The function runs with its owner's rights and appends an entry only if all of this holds:

- the text is the canonical JSON of an entry, its hash is the text's, and it follows the newest entry in
  number, hash and time, by the server's clock; it names the role that connected (`session_user`);
- the event is a charge, or the end of a reservation that the same role made;
- the account was opened in the chain; the cost is not negative, and the total is the one before it with
  this cost, by exact arithmetic, cells included;
- the total is within the limits that the entry of the opening fixed, and so is every allowance that covers
  it;
- the root that the entry states is that of the tree after these changes, which the function makes itself.

SQL cannot evaluate losses: that the cost on each gauge, and the share of each allowance, is what the stated
loss costs is not checked here but by `verify --costs`. Whoever has the rights of the owner, or of a
superuser, is not bound by the function; an anchor kept elsewhere binds them.
"""

from __future__ import annotations

from dalenius.losses.cost import STEP

REFUSED = "DP001"
"""The SQLSTATE of a refusal."""

FUNCTIONS = r"""
CREATE OR REPLACE FUNCTION SCHEMA.ledger_refuse(_why text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN
    RAISE EXCEPTION '%', _why USING ERRCODE = 'DP001';
END $$;

CREATE OR REPLACE FUNCTION SCHEMA.ledger_digest(_words text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT encode(sha256(convert_to(_words, 'UTF8')), 'hex')
$$;

CREATE OR REPLACE FUNCTION SCHEMA.ledger_key(_account text, _scope text) RETURNS text LANGUAGE sql IMMUTABLE
SET search_path = SCHEMA, pg_temp AS $$
    SELECT ledger_digest(length(_account) || ' ' || _account || ' ' || _scope)
$$;

CREATE OR REPLACE FUNCTION SCHEMA.ledger_canonical(_value jsonb) RETURNS text LANGUAGE plpgsql IMMUTABLE
SET search_path = SCHEMA, pg_temp AS $$ BEGIN
    RETURN CASE jsonb_typeof(_value)
        WHEN 'object' THEN (SELECT '{' || coalesce(string_agg(to_json(key)::text || ':'
            || ledger_canonical(value), ',' ORDER BY key COLLATE "C"), '') || '}' FROM jsonb_each(_value))
        WHEN 'array' THEN (SELECT '[' || coalesce(string_agg(ledger_canonical(value), ',' ORDER BY place), '')
            || ']' FROM jsonb_array_elements(_value) WITH ORDINALITY AS items (value, place))
        WHEN 'number' THEN (SELECT CASE WHEN _value::text ~ '^(-|)[0-9]+$' THEN _value::text END)
        ELSE _value::text
    END;
END $$;

CREATE OR REPLACE FUNCTION SCHEMA.ledger_quoted(_words text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT '"' || coalesce(string_agg(CASE
        WHEN letter IN ('"', E'\\') THEN E'\\' || letter
        WHEN letter = E'\n' THEN E'\\n' WHEN letter = E'\r' THEN E'\\r' WHEN letter = E'\t' THEN E'\\t'
        WHEN letter = E'\b' THEN E'\\b' WHEN letter = E'\f' THEN E'\\f'
        WHEN ascii(letter) BETWEEN 32 AND 126 THEN letter
        WHEN ascii(letter) < 65536 THEN E'\\u' || lpad(to_hex(ascii(letter)), 4, '0')
        ELSE E'\\u' || to_hex(55296 + ((ascii(letter) - 65536) >> 10))
            || E'\\u' || to_hex(56320 + ((ascii(letter) - 65536) & 1023))
    END, '' ORDER BY place), '') || '"'
    FROM unnest(string_to_array(_words, NULL)) WITH ORDINALITY AS letters (letter, place)
$$;

CREATE OR REPLACE FUNCTION SCHEMA.ledger_cost(_words text) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE
SET search_path = SCHEMA, pg_temp AS $$ DECLARE _cost jsonb := _words::jsonb; BEGIN
    IF _cost IS NULL OR EXISTS (SELECT FROM jsonb_each(_cost) AS gauges (name, amount)
        WHERE jsonb_array_length(amount) <> 2 OR (amount->>0) !~ '^[0-9]+$' OR (amount->>1) !~ '^[0-9]+$')
    THEN
        PERFORM ledger_refuse('a cost is not one, or below nothing');
    END IF;
    RETURN _cost;
END $$;

CREATE OR REPLACE FUNCTION SCHEMA.ledger_combined(_first jsonb, _second jsonb, _how text) RETURNS jsonb
LANGUAGE sql IMMUTABLE AS $$
    SELECT coalesce(jsonb_object_agg(a.name, CASE _how
        WHEN 'sum' THEN jsonb_build_array((a.amount->>0)::numeric + (b.amount->>0)::numeric,
            (a.amount->>1)::numeric + (b.amount->>1)::numeric)
        WHEN 'difference' THEN jsonb_build_array((a.amount->>0)::numeric - (b.amount->>0)::numeric,
            (a.amount->>1)::numeric - (b.amount->>1)::numeric)
        ELSE jsonb_build_array(greatest((a.amount->>0)::numeric, (b.amount->>0)::numeric),
            greatest((a.amount->>1)::numeric, (b.amount->>1)::numeric))
    END), '{}') FROM jsonb_each(_first) AS a (name, amount)
    JOIN jsonb_each(_second) AS b (name, amount) ON a.name = b.name
$$;

CREATE OR REPLACE FUNCTION SCHEMA.ledger_nothing(_filter jsonb) RETURNS jsonb LANGUAGE sql IMMUTABLE AS $$
    SELECT coalesce(jsonb_object_agg(gauge->>'gauge' || coalesce(' ' || (gauge->>'order'), ''),
        '[0, 0]'::jsonb), '{}') FROM jsonb_array_elements(_filter->'gauges') AS gauges (gauge)
$$;

CREATE OR REPLACE FUNCTION SCHEMA.ledger_within(_steps text, _limit text) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$
    SELECT _steps::numeric * coalesce(nullif(split_part(_limit, '/', 2), ''), '1')::numeric
        <= split_part(_limit, '/', 1)::numeric * STEPS::numeric
$$;

CREATE OR REPLACE FUNCTION SCHEMA.ledger_accepts(_filter jsonb, _total jsonb) RETURNS boolean
LANGUAGE sql IMMUTABLE SET search_path = SCHEMA, pg_temp AS $$
    SELECT EXISTS (SELECT FROM jsonb_array_elements(_filter->'gauges') AS gauges (gauge)
        JOIN jsonb_each(_total) AS parts (name, amount)
        ON name = gauge->>'gauge' || coalesce(' ' || (gauge->>'order'), '')
        WHERE ledger_within(amount->>0, gauge->>'limit') AND ledger_within(amount->>1, gauge->>'slack'))
$$;

CREATE OR REPLACE FUNCTION SCHEMA.ledger_window(_at text, _window text) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE _window WHEN 'hour' THEN left(_at, 13) WHEN 'day' THEN left(_at, 10)
        WHEN 'month' THEN left(_at, 7) WHEN 'year' THEN left(_at, 4)
        WHEN 'week' THEN to_char(left(_at, 10)::date, 'IYYY-"W"IW')
        ELSE to_char(left(_at, 10)::date, 'YYYY-"Q"Q') END
$$;

CREATE OR REPLACE FUNCTION SCHEMA.ledger_node(_path text, _kind text, _lines text[]) RETURNS text
LANGUAGE plpgsql SET search_path = SCHEMA, pg_temp AS $$ DECLARE _node text; BEGIN
    SELECT string_agg(line, E'\n' ORDER BY line COLLATE "C") INTO _node FROM unnest(_lines) AS lines (line);
    _node := concat_ws(E'\n', _kind, _node);
    INSERT INTO balances AS b (account, scope, text) VALUES ('', 'node ' || _path, _node)
        ON CONFLICT (account, scope) DO UPDATE SET text = excluded.text;
    RETURN ledger_digest(_node);
END $$;

CREATE OR REPLACE FUNCTION SCHEMA.ledger_plant(_path text, _lines text[]) RETURNS text LANGUAGE plpgsql
SET search_path = SCHEMA, pg_temp AS $$ DECLARE _digit text; _children text[] := '{}'; BEGIN
    IF cardinality(_lines) <= FEW THEN
        RETURN ledger_node(_path, 'leaf', _lines);
    END IF;
    FOR _digit IN SELECT DISTINCT substr(line, length(_path) + 1, 1) FROM unnest(_lines) AS lines (line) LOOP
        _children := _children || (_digit || ' ' || ledger_plant(_path || _digit, array(
            SELECT line FROM unnest(_lines) AS lines (line)
            WHERE substr(line, length(_path) + 1, 1) = _digit)));
    END LOOP;
    RETURN ledger_node(_path, 'branch', _children);
END $$;

CREATE OR REPLACE FUNCTION SCHEMA.ledger_lines(_path text, _kind text) RETURNS text[] LANGUAGE sql
SET search_path = SCHEMA, pg_temp AS $$
    SELECT (string_to_array(b.text, E'\n'))[2:] FROM balances AS b
    WHERE account = '' AND scope = 'node ' || _path AND split_part(b.text, E'\n', 1) = _kind
$$;

CREATE OR REPLACE FUNCTION SCHEMA.ledger_put(_key text, _value text) RETURNS text LANGUAGE plpgsql
SET search_path = SCHEMA, pg_temp AS $$
DECLARE _path text := ''; _above text[] := '{}'; _hash text; _lines text[]; BEGIN
    LOOP
        EXIT WHEN ledger_lines(_path, 'branch') IS NULL;
        _above := _above || _path;
        _path := _path || substr(_key, length(_path) + 1, 1);
    END LOOP;
    _lines := array(SELECT line FROM unnest(ledger_lines(_path, 'leaf')) AS lines (line)
        WHERE split_part(line, ' ', 1) <> _key);
    _hash := ledger_plant(_path, _lines || (_key || ' ' || _value));
    FOR i IN REVERSE cardinality(_above)..1 LOOP
        _lines := array(SELECT line FROM unnest(ledger_lines(_above[i], 'branch')) AS lines (line)
            WHERE left(line, 1) <> substr(_key, length(_above[i]) + 1, 1));
        _lines := _lines || (substr(_key, length(_above[i]) + 1, 1) || ' ' || _hash);
        _hash := ledger_node(_above[i], 'branch', _lines);
    END LOOP;
    RETURN _hash;
END $$;

CREATE OR REPLACE FUNCTION SCHEMA.ledger_value(_key text) RETURNS text LANGUAGE plpgsql
SET search_path = SCHEMA, pg_temp AS $$ DECLARE _path text := ''; BEGIN
    WHILE ledger_lines(_path, 'branch') IS NOT NULL LOOP
        _path := _path || substr(_key, length(_path) + 1, 1);
    END LOOP;
    RETURN (SELECT split_part(line, ' ', 2) FROM unnest(ledger_lines(_path, 'leaf')) AS lines (line)
        WHERE split_part(line, ' ', 1) = _key);
END $$;

CREATE OR REPLACE FUNCTION SCHEMA.ledger_set(_account text, _scope text, _total jsonb) RETURNS text
LANGUAGE plpgsql SET search_path = SCHEMA, pg_temp AS $$
DECLARE _words text := ledger_canonical(_total); BEGIN
    INSERT INTO balances AS b (account, scope, text) VALUES (_account, _scope, _words)
        ON CONFLICT (account, scope) DO UPDATE SET text = excluded.text;
    RETURN ledger_put(ledger_key(_account, _scope), ledger_digest(_words));
END $$;

CREATE OR REPLACE FUNCTION SCHEMA.ledger_balance(_account text, _scope text) RETURNS jsonb LANGUAGE sql
SET search_path = SCHEMA, pg_temp AS $$
    SELECT b.text::jsonb FROM balances AS b WHERE account = _account AND scope = _scope
$$;

CREATE OR REPLACE FUNCTION SCHEMA.ledger_charge(_number bigint, _account text, _at text, _said jsonb)
RETURNS text LANGUAGE plpgsql SET search_path = SCHEMA, pg_temp AS $$
DECLARE
    _filter jsonb; _limit jsonb; _rule jsonb; _whole jsonb; _own jsonb; _top jsonb; _new jsonb; _none jsonb;
    _cost jsonb := ledger_cost(_said->>'cost'); _covering text[] := '{}'; _scope text; _cell text;
    _before bigint; _root text;
BEGIN
    SELECT ((e.body::jsonb->'fields'->>'terms')::jsonb->>'filter')::jsonb INTO _filter FROM entries AS e
        WHERE account = _account ORDER BY number LIMIT 1;
    IF _filter IS NULL THEN
        PERFORM ledger_refuse('the account was not opened');
    END IF;
    _before := split_part(ledger_value(ledger_key(_account, 'total')), '.', 1)::bigint;
    IF (_said->>'before')::bigint IS DISTINCT FROM _before THEN
        PERFORM ledger_refuse('it names another charge before it');
    END IF;
    SELECT (e.body::jsonb->'fields'->>'total')::jsonb INTO _whole FROM entries AS e WHERE number = _before;
    _whole := coalesce(_whole, ledger_nothing(_filter));
    IF jsonb_typeof(_said->'cell') = 'null' THEN
        _whole := ledger_combined(_whole, _cost, 'sum');
    ELSE
        _none := ledger_nothing(_filter);
        _cell := 'cell [' || ledger_quoted(_said->'cell'->>'division') || ', '
            || ledger_quoted(_said->'cell'->>'name') || ']';
        _scope := 'top ' || (_said->'cell'->>'division');
        _own := ledger_combined(coalesce(ledger_balance(_account, _cell), _none), _cost, 'sum');
        _top := ledger_balance(_account, _scope);
        _new := CASE WHEN _top IS NULL THEN _own ELSE ledger_combined(_top, _own, 'largest') END;
        _whole := ledger_combined(_whole, coalesce(_top, _none), 'difference');
        _whole := ledger_combined(_whole, _new, 'sum');
        _root := ledger_set(_account, _cell, _own);
        _root := ledger_set(_account, _scope, _new);
    END IF;
    IF ledger_canonical(_whole) <> _said->>'total' THEN
        PERFORM ledger_refuse('its total is not the one before it with its cost');
    END IF;
    FOR _rule IN SELECT b.text::jsonb FROM balances AS b
        WHERE account = _account AND starts_with(scope, 'rule allowance ') LOOP
        CONTINUE WHEN (_rule->>'by' IS NOT NULL AND _rule->>'by' <> _said->>'by')
            OR (_rule->>'purpose' IS NOT NULL AND _rule->>'purpose' <> _said->>'purpose');
        _scope := 'allowance ' || (_rule->>'number')
            || coalesce(' ' || ledger_window(_at, _rule->>'window'), '');
        _limit := (_rule->>'filter')::jsonb;
        _covering := _covering || _scope;
        _new := ledger_combined(coalesce(ledger_balance(_account, _scope), ledger_nothing(_limit)),
            ledger_cost(_said->'allowances'->>_scope), 'sum');
        IF NOT ledger_accepts(_limit, _new) THEN
            PERFORM ledger_refuse('it is above an allowance');
        END IF;
        _root := ledger_set(_account, _scope, _new);
    END LOOP;
    IF EXISTS (SELECT FROM jsonb_object_keys(_said->'allowances') AS scopes (scope)
        WHERE scope <> ALL (_covering)) THEN
        PERFORM ledger_refuse('it counts against an allowance that does not cover it');
    END IF;
    IF NOT ledger_accepts(_filter, _whole) THEN
        PERFORM ledger_refuse('it is above the budget');
    END IF;
    RETURN ledger_put(ledger_key(_account, 'total'), _number || '.' || ledger_digest(_said->>'total'));
END $$;

CREATE OR REPLACE FUNCTION SCHEMA.append_entry(_body text, _hash text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = SCHEMA, pg_temp AS $$
DECLARE
    _entry jsonb; _said jsonb; _head record; _newest jsonb; _root text; _held record; _now text;
    _number bigint; _at text;
BEGIN
    PERFORM pg_advisory_xact_lock(LOCK);
    _entry := _body::jsonb;
    _said := _entry->'fields';
    IF ledger_canonical(_entry) IS DISTINCT FROM _body OR _hash IS DISTINCT FROM ledger_digest(_body)
        OR array(SELECT jsonb_object_keys(_entry) ORDER BY 1)
            <> array['account', 'at', 'event', 'fields', 'number', 'previous'] THEN
        PERFORM ledger_refuse('its text is not an entry, or its hash is not the text''s');
    END IF;
    SELECT number, hash, body INTO _head FROM entries ORDER BY number DESC LIMIT 1;
    _newest := _head.body::jsonb;
    _root := _newest->'fields'->>'state';
    _number := (_entry->>'number')::bigint;
    _at := _entry->>'at';
    IF _head IS NULL OR _root IS NULL OR _number <> _head.number + 1 OR _entry->>'previous' <> _head.hash THEN
        PERFORM ledger_refuse('it does not follow the newest entry');
    END IF;
    _now := to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"');
    IF _at COLLATE "C" <> (_newest->>'at') AND (_at !~ '^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$'
        OR _at COLLATE "C" < (_newest->>'at') OR _at COLLATE "C" > _now
        OR _at::timestamptz < clock_timestamp() - interval '5 minutes') THEN
        PERFORM ledger_refuse('its time is not that of the server');
    END IF;
    IF _said->>'session_user' IS DISTINCT FROM session_user::text THEN
        PERFORM ledger_refuse('it does not name the user who connected');
    END IF;
    IF _entry->>'event' IN ('reserve', 'record') THEN
        IF greatest(length(_said->>'by'), length(_said->>'purpose')) > 255
            OR length(_said->>'note') > 2000 THEN
            PERFORM ledger_refuse('a text in it is too long');
        END IF;
        IF (_entry->>'event' = 'reserve') <> (_said->>'owner' IS NOT NULL) THEN
            PERFORM ledger_refuse('a reservation has an owner');
        END IF;
        _root := ledger_charge(_number, _entry->>'account', _at, _said);
        IF _entry->>'event' = 'reserve' THEN
            INSERT INTO reservations VALUES (_number, _entry->>'account', _said->>'owner', '');
        END IF;
    ELSIF _entry->>'event' IN ('commit', 'forfeit') THEN
        SELECT r.number, r.account, e.body::jsonb->'fields'->>'session_user' AS maker INTO _held
            FROM reservations AS r JOIN entries AS e ON e.number = r.number
            WHERE r.number = (_said->>'reservation')::bigint;
        IF _held IS NULL OR _held.account <> _entry->>'account' THEN
            PERFORM ledger_refuse('it ends what is not reserved');
        END IF;
        IF _held.maker IS DISTINCT FROM session_user::text THEN
            RAISE EXCEPTION 'another user reserved it' USING ERRCODE = '42501';
        END IF;
        DELETE FROM reservations WHERE number = _held.number;
    ELSE
        RAISE EXCEPTION 'only the owner may' USING ERRCODE = '42501';
    END IF;
    IF _said->>'state' IS DISTINCT FROM _root THEN
        PERFORM ledger_refuse('its root is not that of what follows from it');
    END IF;
    INSERT INTO entries (number, account, hash, body) VALUES (_number, _entry->>'account', _hash, _body);
END $$;
"""

GRANTS = """
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA SCHEMA FROM PUBLIC;
GRANT USAGE ON SCHEMA SCHEMA TO ROLE;
GRANT SELECT ON SCHEMA.ledger, SCHEMA.entries, SCHEMA.accounts, SCHEMA.balances, SCHEMA.reservations TO ROLE;
GRANT EXECUTE ON FUNCTION SCHEMA.append_entry(text, text) TO ROLE;
"""


def statements(schema: str, lock: int, few: int, role: str) -> str:
    """Return the statements that install the functions and let a role use them.

    Args:
        schema: The schema of the ledger, a plain name.
        lock: The number of the advisory lock of its writers.
        few: Keys that a leaf of the tree lists at most.
        role: The role, which exists.
    """
    quoted = '"' + role.replace('"', '""') + '"'
    text = FUNCTIONS.replace("FEW THEN", f"{few} THEN").replace("(LOCK)", f"({lock})")
    text = text.replace("STEPS::", f"{1 / STEP}::").replace("= SCHEMA,", f"= {schema},")
    text += GRANTS.replace("SCHEMA SCHEMA", f"SCHEMA {schema}").replace("TO ROLE;", f"TO {quoted};")
    return text.replace("SCHEMA.", f"{schema}.")
