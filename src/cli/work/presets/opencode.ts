/** OpenCode in headless mode, by the output of version 1.18.33. It refuses what its settings ask a person for. */
import * as z from "zod";
import { oneLine } from "../../show/output.ts";
import { absent, type Preset, type Seen, TOOL_MAX } from "./preset.ts";
import { providerCause } from "./provider-words.ts";

const eventSchema = z.object({
  type: z.string(),
  sessionID: absent(z.string()),
  part: absent(
    z.object({
      text: absent(z.string()),
      tool: absent(z.string()),
      reason: absent(z.string()),
      state: absent(z.object({ status: absent(z.string()), error: absent(z.string()) })),
    }),
  ),
  error: absent(
    z.object({
      name: absent(z.string()),
      data: absent(z.object({ message: absent(z.string()), statusCode: absent(z.number()) })),
    }),
  ),
});
type Event = z.infer<typeof eventSchema>;

export const opencode: Preset = {
  program: "opencode",
  name: "OpenCode",
  args: (session, extra) => [
    ...["run", "--format", "json"],
    ...(session === undefined ? [] : ["--session", session]),
    ...extra,
  ],
  read: (event) => {
    const { data } = eventSchema.safeParse(event);
    return data ? seen(data) : {};
  },
};

const isRefusal = (text: string): boolean =>
  /rejected permission/i.test(text) || (/permission /i.test(text) && /rejected|denied/i.test(text));

function seen({ type, sessionID, part, error }: Event): Seen {
  const session = sessionID ?? undefined;
  switch (type) {
    case "text":
      return { session, began: true, answer: part?.text ?? "", progress: part?.text ?? undefined };
    case "tool_use": {
      const tool = part?.tool ?? "a tool";
      const why = part?.state?.error ?? "";
      const common = { session, began: true, answer: "", progress: tool };
      return isRefusal(why) ? { ...common, refused: [oneLine(`${tool}: ${why}`, TOOL_MAX)] } : common;
    }
    case "step_finish":
      return { session, stopReason: STOPS[part?.reason ?? ""] };
    case "error": {
      const failure = error?.data?.message ?? error?.name ?? "an error";
      const status = error?.data?.statusCode;
      return { session, failure, ...providerCause(failure), ...(status != null && { status }) };
    }
    default:
      return { session };
  }
}

/** The reasons for which a step ends before the model is done. */
const STOPS: Readonly<Record<string, string>> = { length: "max_tokens", "content-filter": "refusal" };
