/** Rules about all other output: callbacks, A2A streams, error answers, logs, processes. */
import { isTerminal, stateSchema } from "../../../src/schema/delegation.ts";
import type { Facts, Violation } from "./facts.ts";

/** Every delivery is signed, and carries a stored event. */
export function forgedDelivery({ history }: Facts): Violation[] {
  return history.deliveries.flatMap(({ id, seq, genuine, kind, t }) => {
    if (!genuine) return [{ rule: "delivery-forged", id, what: `a ${kind} was not signed as it has to be` }];
    const stored = history.stored.get(id);
    if (stored?.some((event) => event.seq === seq) === true) return [];
    return [
      { rule: "delivery-forged", id, what: `a ${kind} told of event ${seq}, which is not kept`, at: t },
    ];
  });
}

/** Work with a callback gets a callback of its end. */
export function undelivered({ history, calls, records }: Facts): Violation[] {
  const called = new Set(
    history.deliveries.filter(({ state }) => isTerminal(stateSchema.parse(state))).map(({ id }) => id),
  );
  return calls("delegate").flatMap(({ result, via, id = "" }) =>
    result === "ok" && via === "callback" && records.has(id) && !called.has(id)
      ? [{ rule: "undelivered", id, what: "nobody was called back about its end" }]
      : [],
  );
}

/** An A2A stream shows nothing after the end. */
export function a2aOrder({ history }: Facts): Violation[] {
  const ended = new Set<string>();
  return history.a2a.flatMap(({ stream, id, state }) => {
    if (ended.has(stream)) return [{ rule: "a2a-order", id, what: `stream ${stream} went on with ${state}` }];
    if (ENDED.has(state)) ended.add(stream);
    return [];
  });
}
/** An AG-UI run begins once, shows nothing after its end, and ends as its delegation did. */
export function agUiOrder({ history, records }: Facts): Violation[] {
  const open = new Set<string>();
  const ended = new Set<string>();
  return history.agui.flatMap(({ stream, id, type, state, t }) => {
    const found = (what: string, at?: number) => [
      { rule: "ag-ui-order", id, what: `run ${stream} ${what}`, ...(at !== undefined && { at }) },
    ];
    if (ended.has(stream)) return found(`went on with ${type}`);
    if (open.has(stream) === (type === "RUN_STARTED")) return found(`has ${type} in the wrong place`);
    open.add(stream);
    if (type === "RUN_FINISHED" || type === "RUN_ERROR") ended.add(stream);
    const shown = OUTCOMES[state] ?? state;
    const record = records.get(id);
    const isEnd = isTerminal(stateSchema.safeParse(shown).data ?? "working");
    // A delegation never leaves its final state.
    return isEnd && record && record.state !== shown
      ? found(`ended as ${shown}, and it is ${record.state}`, t)
      : [];
  });
}
const OUTCOMES: Readonly<Record<string, string>> = { success: "completed", cancelled: "canceled" };

const ENDED = new Set(["COMPLETED", "FAILED", "CANCELED", "REJECTED"].map((state) => `TASK_STATE_${state}`));

/** Whatever breaks, no answer is `internal`. */
export function internalError({ history }: Facts): Violation[] {
  return history.calls.flatMap(({ op, id = "", code, status }) =>
    code === "internal" || status === 500
      ? [{ rule: "internal-error", id, what: `${op} was answered ${status} ${code}` }]
      : [],
  );
}

const STACK = /^\s+at .+:\d+:\d+\)?$|"stack":|\\n\s+at .+:\d+:\d+/;

/** No log contains a token, a secret or a stack trace. */
export function leak({ history }: Facts): Violation[] {
  return history.logs.flatMap(({ source, line }) => {
    const secret = history.secrets.some((one) => line.includes(one));
    if (!secret && !STACK.test(line)) return [];
    // The line itself is not repeated, because it contains the secret.
    return [{ rule: "leak", id: "", what: `${source} logged a ${secret ? "secret" : "stack"}` }];
  });
}

/** No gateway ends by itself, and each exits cleanly after SIGTERM. */
export function died({ history }: Facts): Violation[] {
  return history.deaths.map((what) => ({ rule: "died", id: "", what }));
}
