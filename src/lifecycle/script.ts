/**
 * The script in two versions: at full memory, Redis refuses the one for moves that grow a delegation.
 */
import { Script } from "../redis/script.ts";
import { assemble } from "./assemble.ts";

/** For the moves that the state table calls `new` or `grows`. */
export const growingScript = new Script(assemble());
export const inFlightScript = new Script(assemble(" flags=allow-oom"));
