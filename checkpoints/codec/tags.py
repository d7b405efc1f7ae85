"""The msgpack extension types of the format. A number, once released, keeps its meaning for ever.

An extension type cannot be written in JSON or in a plain Python value, so no saved data can be taken for a
tag. Strings, booleans, None, finite floats, integers of up to 64 bits, bytes, lists and dicts with string
keys need none.
"""

INTEGER = 1  # two's complement, big-endian
TUPLE = 2  # array of items
SET = 3  # array of items, ordered by their encoded bytes
FROZENSET = 4  # likewise
PAIRS = 5  # a dict with a key that is not a string: array of key, value, key, value ...
DECIMAL = 6  # UTF-8 text
UUID = 7  # 16 bytes
DATETIME = 8  # [ISO 8601 without offset, fold, zone]; zone: None, a name, [microseconds], [microseconds, name]
DATE = 9  # ISO 8601 text
TIME = 10  # as DATETIME
TIMEDELTA = 11  # [days, seconds, microseconds]
ENUM = 12  # [registered name, member name; for a flag, its number]
OBJECT = 13  # [registered name, {field: value}]
