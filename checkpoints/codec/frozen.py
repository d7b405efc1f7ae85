"""Read-only views of saved values: changing a history item that was handed out raises and is not lost."""

from typing import Any, NoReturn


def _refuse(self: object, *args: object, **kwargs: object) -> NoReturn:
    raise TypeError("a history item is read-only; change a copy.deepcopy() of it")


class FrozenDict(dict[Any, Any]):
    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __deepcopy__(self, memo: dict[int, object]) -> dict[Any, Any]:
        return {key: thaw(value) for key, value in self.items()}


class FrozenList(list[Any]):
    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse
    append = clear = extend = insert = pop = remove = reverse = sort = _refuse

    def __deepcopy__(self, memo: dict[int, object]) -> list[Any]:
        return [thaw(value) for value in self]


def freeze(value: Any) -> Any:
    """`value` with its dicts, lists and sets read-only at every depth. It compares equal to the original.

    Instances of registered classes stay as they are: declare them frozen.
    """
    if type(value) is dict:
        return FrozenDict({key: freeze(item) for key, item in value.items()})
    if type(value) is list:
        return FrozenList([freeze(item) for item in value])
    if type(value) is tuple:
        return tuple([freeze(item) for item in value])
    if type(value) is set:
        return frozenset(value)
    return value


def thaw(value: Any) -> Any:
    """A plain, changeable copy of what `freeze` gave out; sets stay frozen."""
    if isinstance(value, dict):
        return {key: thaw(item) for key, item in value.items()}
    if isinstance(value, list):
        return [thaw(item) for item in value]
    if type(value) is tuple:
        return tuple([thaw(item) for item in value])
    return value
