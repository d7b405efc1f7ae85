// What every page runs. Nothing here decides anything: it moves the focus, keeps times fresh, and asks for fragments.
import "./clock.js";
import "./focus.js";
import "./inbox.js";
import "./keys.js";
import "./live.js";
import "./network.js";
