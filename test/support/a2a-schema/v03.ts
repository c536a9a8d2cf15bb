/**
 * What a server of A2A 0.3 sends over JSON-RPC, as closed tables. The compiler compares the names with the SDK's types.
 * Limit: not the protobuf's objects that HTTP+JSON has in 0.3.
 */
import type { LegacyRestTransportHandler } from "@a2a-js/sdk/compat/v0_3/server";
import { A2A_STATES } from "../../../src/schema/a2a-task.ts";
import type { Definitions } from "./closed.ts";
import { ERRORS } from "./errors.ts";
import { METADATA } from "./v1.ts";

type Handler = InstanceType<typeof LegacyRestTransportHandler>;
type Task = Awaited<ReturnType<Handler["getTask"]>>;
type Message = NonNullable<Task["history"]>[number];
type Artifact = NonNullable<Task["artifacts"]>[number];
type Card = Awaited<ReturnType<Handler["getAuthenticatedExtendedAgentCard"]>>;
type Config = Awaited<ReturnType<Handler["getTaskPushNotificationConfig"]>>;
type Event = Awaited<ReturnType<Handler["resubscribe"]>> extends AsyncGenerator<infer E> ? E : never;
type StatusUpdate = Extract<Event, { kind: "status-update" }>;
type ArtifactUpdate = Extract<Event, { kind: "artifact-update" }>;
type Skill = Card["skills"][number];
type Extension = NonNullable<Card["capabilities"]["extensions"]>[number];
type Interface = NonNullable<Card["additionalInterfaces"]>[number];
type Signature = NonNullable<Card["signatures"]>[number];
type Push = Config["pushNotificationConfig"];

/** A type for each member, and for no other. */
type Fields<T> = { readonly [Name in keyof Required<T>]: string };
const table = <T>(fields: Fields<T>) => ({ fields });

const oneOf = (...names: string[]) => ({ oneOf: names.map((name) => ({ $ref: `#/definitions/${name}` })) });

export const V03: Definitions = {
  Metadata: METADATA,
  TaskState: { enum: Object.values(A2A_STATES).map(({ v03 }) => v03) },
  Role: { enum: ["user", "agent"] },
  Task: table<Task>({
    kind: "'task'!",
    id: "string+",
    contextId: "string+",
    status: "TaskStatus!",
    artifacts: "Artifact[]",
    history: "Message[]",
    metadata: "Metadata",
  }),
  TaskStatus: table<Task["status"]>({ state: "TaskState!", message: "Message", timestamp: "time" }),
  Message: table<Message>({
    kind: "'message'!",
    messageId: "string+",
    contextId: "string",
    taskId: "string",
    role: "Role!",
    parts: "Part[]+",
    metadata: "struct",
    extensions: "string[]",
    referenceTaskIds: "string[]",
  }),
  Part: oneOf("TextPart", "FilePart", "DataPart"),
  TextPart: { fields: { kind: "'text'!", text: "string!", metadata: "struct" } },
  FilePart: { fields: { kind: "'file'!", file: "File!", metadata: "struct" } },
  DataPart: { fields: { kind: "'data'!", data: "struct!", metadata: "struct" } },
  File: {
    fields: { bytes: "bytes", uri: "string", mimeType: "string", name: "string" },
    oneOf: ["bytes", "uri"],
  },
  Artifact: table<Artifact>({
    artifactId: "string+",
    name: "string",
    description: "string",
    parts: "Part[]+",
    metadata: "struct",
    extensions: "string[]",
  }),
  StatusUpdate: table<StatusUpdate>({
    kind: "'status-update'!",
    taskId: "string+",
    contextId: "string+",
    status: "TaskStatus!",
    final: "boolean!",
    metadata: "Metadata",
  }),
  ArtifactUpdate: table<ArtifactUpdate>({
    kind: "'artifact-update'!",
    taskId: "string+",
    contextId: "string+",
    artifact: "Artifact!",
    append: "boolean",
    lastChunk: "boolean",
    metadata: "Metadata",
  }),
  Sent: oneOf("Task", "Message"),
  Event: oneOf("Task", "Message", "StatusUpdate", "ArtifactUpdate"),
  Config: table<Config>({ taskId: "string+", pushNotificationConfig: "Push!" }),
  Push: table<Push>({ id: "string", url: "string+", token: "string", authentication: "Authentication" }),
  Authentication: { fields: { schemes: "string[]!", credentials: "string" } },
  Configs: { type: "array", items: { $ref: "#/definitions/Config" } },
  Card: table<Card>({
    protocolVersion: "string+",
    name: "string+",
    description: "string+",
    version: "string+",
    url: "string+",
    preferredTransport: "string",
    additionalInterfaces: "Interface[]",
    provider: "Provider",
    documentationUrl: "string",
    iconUrl: "string",
    capabilities: "Capabilities!",
    supportsAuthenticatedExtendedCard: "boolean",
    securitySchemes: "SecurityScheme{}",
    security: "Scopes[]",
    defaultInputModes: "string[]+",
    defaultOutputModes: "string[]+",
    skills: "Skill[]+",
    signatures: "Signature[]",
  }),
  Interface: table<Interface>({ url: "string+", transport: "string+" }),
  Provider: { fields: { organization: "string!", url: "string!" } },
  Capabilities: table<Card["capabilities"]>({
    streaming: "boolean",
    pushNotifications: "boolean",
    stateTransitionHistory: "boolean",
    extensions: "Extension[]",
  }),
  Extension: table<Extension>({
    uri: "string+",
    description: "string",
    required: "boolean",
    params: "struct",
  }),
  /** The broker's cards have only this one; another needs its table here. */
  SecurityScheme: {
    fields: { type: "'http'!", scheme: "string+", description: "string", bearerFormat: "string" },
  },
  Scopes: { type: "object", additionalProperties: { type: "array", items: { type: "string" } } },
  Skill: table<Skill>({
    id: "string+",
    name: "string+",
    description: "string+",
    tags: "string[]+",
    examples: "string[]",
    inputModes: "string[]",
    outputModes: "string[]",
    security: "Scopes[]",
  }),
  Signature: table<Signature>({ protected: "string+", signature: "string+", header: "struct" }),
  Nothing: { type: "null" },
  ...ERRORS,
};

/** The result of each JSON-RPC method. */
export const RESULTS_V03: Readonly<Record<string, string>> = {
  "message/send": "Sent",
  "message/stream": "Event",
  "tasks/get": "Task",
  "tasks/cancel": "Task",
  "tasks/resubscribe": "Event",
  "tasks/pushNotificationConfig/set": "Config",
  "tasks/pushNotificationConfig/get": "Config",
  "tasks/pushNotificationConfig/list": "Configs",
  "tasks/pushNotificationConfig/delete": "Nothing",
  "agent/getAuthenticatedExtendedCard": "Card",
};
