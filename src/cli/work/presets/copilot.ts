/** GitHub Copilot CLI in headless mode, by the output of version 1.0.102. */
import * as z from "zod";
import { oneLine } from "../../show/output.ts";
import { absent, type Preset, type Seen, TOOL_MAX } from "./preset.ts";
import { providerCause } from "./provider-words.ts";

const eventSchema = z.object({
  type: z.string(),
  sessionId: absent(z.string()),
  exitCode: absent(z.number()),
  data: absent(
    z.object({
      content: absent(z.string()),
      message: absent(z.string()),
      statusCode: absent(z.number()),
      toolName: absent(z.string()),
      toolTitle: absent(z.string()),
      success: absent(z.boolean()),
      error: absent(z.object({ code: absent(z.string()), message: absent(z.string()) })),
      toolRequests: absent(z.array(z.unknown())),
    }),
  ),
});
type Event = z.infer<typeof eventSchema>;

export const copilot: Preset = {
  program: "copilot",
  name: "GitHub Copilot CLI",
  args: (session, extra, folders) => [
    ...["--output-format", "json", "--no-ask-user"],
    ...folders.flatMap((folder) => ["--add-dir", folder]),
    ...(session === undefined ? [] : [`--resume=${session}`]),
    ...extra,
  ],
  read: (event) => {
    const { data } = eventSchema.safeParse(event);
    return data ? seen(data) : {};
  },
};

function seen({ type, sessionId, exitCode, data }: Event): Seen {
  switch (type) {
    case "assistant.message":
      return { began: true, answer: data?.content ?? "", progress: data?.content ?? undefined };
    case "tool.execution_start":
      return { began: true, progress: data?.toolTitle ?? data?.toolName ?? "a tool" };
    case "tool.execution_complete":
      return data?.success === false && data.error?.code === "denied"
        ? { refused: [oneLine(data.error.message ?? data.toolName ?? "a tool", TOOL_MAX)] }
        : {};
    case "session.error": {
      const failure = data?.message ?? "an error";
      return {
        failure,
        ...providerCause(failure),
        ...(data?.statusCode != null && { status: data.statusCode }),
      };
    }
    case "result":
      return { session: sessionId ?? undefined, ...(exitCode ? { failure: `exit status ${exitCode}` } : {}) };
    default:
      return {};
  }
}
