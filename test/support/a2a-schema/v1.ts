/**
 * What a server of A2A 1.0 sends, as closed tables: names, types and required members of the specification's protobuf.
 * No package has its JSON Schema; strict.test.ts compares the names with those that the SDK's codecs read.
 */
import { A2A_STATES } from "../../../src/schema/a2a-task.ts";
import type { Definitions } from "./closed.ts";
import { ERRORS } from "./errors.ts";

/** The broker's own member of a metadata: camelCase, except for what agents name. */
const OWN = { propertyNames: { pattern: "^[a-z][A-Za-z0-9]*$" } };
export const METADATA = {
  type: "object",
  properties: {
    errand: {
      type: "object",
      ...OWN,
      properties: {
        progress: { type: "object", ...OWN },
        error: { type: "object", ...OWN },
        interrupt: {
          type: "object",
          ...OWN,
          properties: { requests: { type: "array", items: { type: "object", ...OWN } } },
        },
      },
    },
  },
};

export const V1: Definitions = {
  Metadata: METADATA,
  TaskState: { enum: Object.keys(A2A_STATES).filter((name) => name !== "TASK_STATE_UNSPECIFIED") },
  Role: { enum: ["ROLE_USER", "ROLE_AGENT"] },
  Task: {
    fields: {
      id: "string+",
      contextId: "string+",
      status: "TaskStatus!",
      artifacts: "Artifact[]",
      history: "Message[]",
      metadata: "Metadata",
    },
  },
  TaskStatus: { fields: { state: "TaskState!", message: "Message", timestamp: "time!" } },
  Part: {
    fields: {
      text: "string",
      raw: "bytes",
      url: "string",
      data: "value",
      metadata: "struct",
      filename: "string",
      mediaType: "string",
    },
    oneOf: ["text", "raw", "url", "data"],
  },
  Message: {
    fields: {
      messageId: "string+",
      contextId: "string",
      taskId: "string",
      role: "Role!",
      parts: "Part[]+",
      metadata: "struct",
      extensions: "string[]",
      referenceTaskIds: "string[]",
    },
  },
  Artifact: {
    fields: {
      artifactId: "string+",
      name: "string",
      description: "string",
      parts: "Part[]+",
      metadata: "struct",
      extensions: "string[]",
    },
  },
  TaskStatusUpdateEvent: {
    fields: { taskId: "string+", contextId: "string+", status: "TaskStatus!", metadata: "Metadata" },
  },
  TaskArtifactUpdateEvent: {
    fields: {
      taskId: "string+",
      contextId: "string+",
      artifact: "Artifact!",
      append: "boolean",
      lastChunk: "boolean",
      metadata: "Metadata",
    },
  },
  StreamResponse: {
    fields: {
      task: "Task",
      message: "Message",
      statusUpdate: "TaskStatusUpdateEvent",
      artifactUpdate: "TaskArtifactUpdateEvent",
    },
    oneOf: ["task", "message", "statusUpdate", "artifactUpdate"],
  },
  SendMessageResponse: { fields: { task: "Task", message: "Message" }, oneOf: ["task", "message"] },
  ListTasksResponse: {
    fields: { tasks: "Task[]!", nextPageToken: "string!", pageSize: "int!", totalSize: "int!" },
  },
  AuthenticationInfo: { fields: { scheme: "string+", credentials: "string" } },
  TaskPushNotificationConfig: {
    fields: {
      tenant: "string",
      id: "string",
      taskId: "string",
      url: "string+",
      token: "string",
      authentication: "AuthenticationInfo",
    },
  },
  ListTaskPushNotificationConfigsResponse: {
    fields: { configs: "TaskPushNotificationConfig[]", nextPageToken: "string" },
  },
  AgentCard: {
    fields: {
      name: "string+",
      description: "string+",
      supportedInterfaces: "AgentInterface[]+",
      provider: "AgentProvider",
      version: "string+",
      documentationUrl: "string",
      capabilities: "AgentCapabilities!",
      securitySchemes: "SecurityScheme{}",
      securityRequirements: "SecurityRequirement[]",
      defaultInputModes: "string[]+",
      defaultOutputModes: "string[]+",
      skills: "AgentSkill[]+",
      signatures: "AgentCardSignature[]",
      iconUrl: "string",
    },
  },
  AgentInterface: {
    fields: { url: "string+", protocolBinding: "string+", tenant: "string", protocolVersion: "string+" },
  },
  AgentProvider: { fields: { url: "string+", organization: "string+" } },
  AgentCapabilities: {
    fields: {
      streaming: "boolean",
      pushNotifications: "boolean",
      extensions: "AgentExtension[]",
      extendedAgentCard: "boolean",
    },
  },
  AgentExtension: {
    fields: { uri: "string", description: "string", required: "boolean", params: "struct" },
  },
  AgentSkill: {
    fields: {
      id: "string+",
      name: "string+",
      description: "string+",
      tags: "string[]+",
      examples: "string[]",
      inputModes: "string[]",
      outputModes: "string[]",
      securityRequirements: "SecurityRequirement[]",
    },
  },
  AgentCardSignature: { fields: { protected: "string+", signature: "string+", header: "struct" } },
  StringList: { fields: { list: "string[]" } },
  SecurityRequirement: { fields: { schemes: "StringList{}" } },
  /** The broker's cards have only this one; another needs its table here. */
  SecurityScheme: {
    fields: { httpAuthSecurityScheme: "HTTPAuthSecurityScheme" },
    oneOf: ["httpAuthSecurityScheme"],
  },
  HTTPAuthSecurityScheme: {
    fields: { description: "string", scheme: "string+", bearerFormat: "string" },
  },
  Nothing: { type: "null" },
  ...ERRORS,
};

/** The result of each JSON-RPC method, and the response of each HTTP+JSON operation. */
export const RESULTS_V1: Readonly<Record<string, string>> = {
  SendMessage: "SendMessageResponse",
  SendStreamingMessage: "StreamResponse",
  GetTask: "Task",
  ListTasks: "ListTasksResponse",
  CancelTask: "Task",
  SubscribeToTask: "StreamResponse",
  CreateTaskPushNotificationConfig: "TaskPushNotificationConfig",
  GetTaskPushNotificationConfig: "TaskPushNotificationConfig",
  ListTaskPushNotificationConfigs: "ListTaskPushNotificationConfigsResponse",
  DeleteTaskPushNotificationConfig: "Nothing",
  GetExtendedAgentCard: "AgentCard",
};
