/** Replies in A2A's form: the SDK's objects in each version and envelope, and the error of a refused body. */
import {
  type Artifact,
  type Message,
  type Part,
  Role,
  StreamResponse,
  type Task,
  type TaskState,
} from "@a2a-js/sdk";
import { V03PushNotificationSerializer } from "@a2a-js/sdk/compat/v0_3/server";
import { parseA2aReply } from "../../../src/doors/rest/a2a-reply.ts";
import { A2A_STATES, type A2aStateName } from "../../../src/schema/a2a-task.ts";
import { ErrandError } from "../../../src/schema/errors.ts";

export const TAIL = "0_0123456789abcdefghjkmnpqrs";
export const OTHER = "0_zzzzzzzzzzzzzzzzzzzzzzzzzz";
export const DELEGATION = `dlg_${TAIL}`;
export const LEASE = `lse_${TAIL}_2`;

type Payload = NonNullable<StreamResponse["payload"]>;
export type Json = Record<string, unknown>;

/** The SDK's enum member of a row; the first test checks that each row has one. */
export const stateOf = (name: A2aStateName): TaskState => A2A_STATES[name].number;
export const STATES = Object.keys(A2A_STATES).filter((name): name is A2aStateName => name in A2A_STATES);

export const part = (content: Part["content"], more: Partial<Part> = {}): Part => ({
  content,
  metadata: undefined,
  filename: "",
  mediaType: "",
  ...more,
});

export const said = (text: string, more: Partial<Message> = {}): Message => ({
  messageId: "m-1",
  contextId: "ctx",
  taskId: "t-1",
  role: Role.ROLE_AGENT,
  parts: [part({ $case: "text", value: text })],
  metadata: undefined,
  extensions: [],
  referenceTaskIds: [],
  ...more,
});

export const artifact: Artifact = {
  artifactId: "a-1",
  name: "report",
  description: "",
  parts: [
    part({ $case: "raw", value: Buffer.from("bytes") }, { filename: "r.bin", mediaType: "application/x" }),
  ],
  metadata: { page: 1 },
  extensions: ["urn:x"],
};
export const ARTIFACT = {
  artifactId: "a-1",
  name: "report",
  parts: [{ raw: "Ynl0ZXM=", filename: "r.bin", mediaType: "application/x" }],
  metadata: { page: 1 },
  extensions: ["urn:x"],
};
export const SAID = {
  messageId: "m-1",
  contextId: "ctx",
  taskId: "t-1",
  role: "ROLE_AGENT",
  parts: [{ text: "words" }],
};

export const task = (state: TaskState, more: Partial<Task> = {}): Task => ({
  id: "t-1",
  contextId: "ctx",
  status: { state, message: said("words"), timestamp: "2026-11-20T10:00:00.000Z" },
  artifacts: [artifact],
  history: [],
  metadata: undefined,
  ...more,
});

/** A real object in each version's form, in every possible envelope. */
export function written(payload: Payload): Record<string, unknown> {
  const v10 = StreamResponse.toJSON({ payload }) as Json;
  const v03 = JSON.parse(String(new V03PushNotificationSerializer().serialize({ payload }).body));
  const bare = v10[payload.$case];
  const envelope = (result: unknown) => ({ jsonrpc: "2.0", id: 7, result });
  return {
    "1.0 bare": bare,
    "1.0 wrapped": v10,
    "1.0 enveloped": envelope(v10),
    "1.0 enveloped, unwrapped": envelope(bare),
    "1.0 with error null": { ...envelope(v10), error: null },
    "0.3 bare": v03,
    "0.3 wrapped": { [payload.$case]: v03 },
    "0.3 enveloped": envelope(v03),
    "0.3 enveloped, without kind": envelope({ ...v03, kind: undefined }),
  };
}

export function refused(body: unknown): ErrandError {
  try {
    parseA2aReply(body);
  } catch (error) {
    if (error instanceof ErrandError) return error;
    throw error;
  }
  throw new Error("it was accepted");
}
export const issuesOf = (error: ErrandError) =>
  error.context.details?.issues as { path: string; reason: string }[];
