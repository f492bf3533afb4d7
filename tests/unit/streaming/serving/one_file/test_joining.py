"""Modules in, one script out: each form of import and export that the page has, and no other."""

import re

import pytest

from streaming.serving.one_file.joining import JoinError, joined
from streaming.serving.page_files import PageFiles

PAGE = PageFiles()
INSTEAD = {"api.js": "captured/api.js"}

EACH_FORM = {
    "deep/app.js": """\
import { one as first, two } from "../a.js";
import whole from "../b.js";
first(two, whole);
""",
    "a.js": 'export { two } from "./c.js";\nexport function one() {}\n',
    "b.js": "var t=1;export default function(s){return t}\n//# sourceMappingURL=b.js.map\n",
    "c.js": 'import{three as n}from"./d.js";var x=n;export{x as two,n as four};\n',
    "d.js": "export const three = 3;\nexport async function later() {}\nexport class Kept {}\n",
}
EACH_FORM_JOINED = """\
// d.js
const module0 = (() => {
const three = 3;
async function later() {}
class Kept {};
return { three: three, later: later, Kept: Kept };
})();
// c.js
const module1 = (() => {
const { three: n } = module0;var x=n;
return { two: x, four: n };
})();
// a.js
const module2 = (() => {
const { two: two } = module1;
function one() {};
return { two: two, one: one };
})();
// b.js
const module3 = (() => {
var t=1;const whole = function(s){return t};
return { default: whole };
})();
// deep/app.js
const module4 = (() => {
const { one: first, two: two } = module2;
const { default: whole } = module3;
first(two, whole);
return {  };
})();"""


def test_a_module_is_called_once_behind_those_that_it_imports() -> None:
    """Names change as in the lists; a published library's map of its source is no longer asked for."""
    assert joined(EACH_FORM.__getitem__, "deep/app.js", {}) == EACH_FORM_JOINED


def test_a_module_takes_the_place_of_another() -> None:
    """Whoever imports it; the other one is not in the script."""
    texts = {
        "app.js": 'import { a } from "./api.js";\n',
        "api.js": "fetch();\n",
        "kept.js": "export const a = 1;\n",
    }
    script = joined(texts.__getitem__, "app.js", {"api.js": "kept.js"})
    assert "const a = 1" in script
    assert "fetch" not in script


@pytest.mark.parametrize(
    ("texts", "says"),
    [
        pytest.param({"app.js": 'import { a } from "./no.js";\n'}, "there is no module no.js", id="missing"),
        pytest.param({"app.js": 'import { a } from "./app.js";\n'}, "in a circle", id="circle"),
        pytest.param(
            {"app.js": 'import { a } from "./b.js";\n', "b.js": "export const b = 1;\n"},
            "app.js imports a from b.js, which does not export it",
            id="not-exported",
        ),
        pytest.param({"app.js": 'import * as all from "./b.js";\n'}, "not understood", id="star"),
        pytest.param({"app.js": "export let a = 1;\n"}, "not understood", id="changing"),
        pytest.param({"app.js": "const a = import.meta.url;\n"}, "not understood", id="meta"),
        pytest.param({"app.js": 'const a = "</script>";\n'}, "would end the script", id="end-of-script"),
        pytest.param({"app.js": 'const a = "<!--";\n'}, "would end the script", id="comment"),
    ],
)
def test_what_would_be_joined_wrongly_is_refused(texts: dict[str, str], says: str) -> None:
    """With the place, before anybody opens the file."""
    with pytest.raises(JoinError, match=re.escape(says)):
        joined(texts.__getitem__, "app.js", {})


def test_the_pages_own_modules_are_joined_and_ask_nobody() -> None:
    """The views of the page without its requests, events and dialogs; each module once."""
    script = joined(PAGE.text, "captured/app.js", INSTEAD)
    assert script == joined(PAGE.text, "captured/app.js", INSTEAD)
    modules = re.findall(r"^// (\S+\.js)$", script, re.MULTILINE)
    assert len(modules) == len(set(modules))
    assert {"timeline.js", "lanes.js", "rebalance.js", "story.js"} < set(modules)
    assert not {"api.js", "live.js", "silencer.js", "fleet.js"} & set(modules)
    assert not re.search(r"fetch\(|EventSource|XMLHttpRequest|WebSocket|sendBeacon|import\(", script)
    addresses = set(re.findall(r"https?://[\w./-]+", script))
    assert {one for one in addresses if not one.startswith("http://www.w3.org/")} == set()
