/**
 * Bounds the messages of MCP before the SDK checks them, which takes it several passes over every member. Only the
 * arguments of a tool call, answers to the server and updates of tasks may be large. Limit: the body as a whole is bounded
 * like every other.
 */
import { ErrandError } from "../../schema/errors.ts";
import { LIMITS } from "../../schema/limits.ts";

type Members = Readonly<Record<string, unknown>>;

const isObject = (value: unknown): value is Members => typeof value === "object" && value !== null;

/** The members and elements in a value, at all depths; counts no further than `most + 1`. */
export function countValues(value: unknown, most: number): number {
  const rest: unknown[] = [value];
  let count = 0;
  while (rest.length > 0) {
    const next = rest.pop();
    if (!isObject(next)) continue;
    if (Array.isArray(next)) {
      count += next.length;
      if (count > most) return most + 1;
      rest.push(...next);
      continue;
    }
    for (const name in next) {
      count += 1;
      if (count > most) return most + 1;
      rest.push(next[name]);
    }
  }
  return count;
}

/** Methods whose messages may be as large as any body. */
const LARGE: ReadonlySet<unknown> = new Set(["tools/call", "tasks/update"]);

const isLarge = (message: unknown): boolean =>
  isObject(message) && (LARGE.has(message.method) || (message.method === undefined && "result" in message));

/** A message without what may be large in it: the values of its arguments. Their names stay, because no tool has many. */
function withoutArguments(message: unknown): unknown {
  if (!isObject(message) || message.method !== "tools/call" || !isObject(message.params)) return message;
  const { arguments: given } = message.params;
  const names = isObject(given) ? Object.keys(given) : [];
  return { ...message, params: { ...message.params, arguments: names } };
}

function tooLarge(bytes: number, most: number): ErrandError {
  return new ErrandError("payload_too_large", `The body has ${bytes} bytes; the limit is ${most}.`, {
    recovery: "Send less in params and _meta. Only the arguments of a tool call may be larger.",
  });
}

/** Throws `payload_too_large` or `invalid_request`. `bytes` is the size of the body. */
export function requireBounded(body: unknown, bytes: number): void {
  const messages: readonly unknown[] = Array.isArray(body) ? body : [body];
  const mostBytes = LIMITS.mcp_message_bytes.value;
  if (bytes > mostBytes && !messages.some(isLarge)) throw tooLarge(bytes, mostBytes);
  const most = LIMITS.mcp_message_values.value;
  // An update of a task, and an answer, have values of their own, and few of them.
  const values = countValues(messages.map(withoutArguments), most);
  if (values <= most) return;
  throw new ErrandError(
    "invalid_request",
    `The messages have more than ${most} members and elements, without those inside the values of a tool call's arguments.`,
    {
      details: { issues: [{ path: "", reason: `at most ${most} members and elements` }] },
      recovery:
        "Send fewer messages in one body, and less in params and _meta. Only the value of an argument of a tool call may have more.",
    },
  );
}
