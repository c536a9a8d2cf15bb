/** Errors of both versions, with the details of google.rpc. */
import type { Definitions } from "./closed.ts";

const TYPE = "type.googleapis.com/google.rpc";

export const ERRORS: Definitions = {
  ErrorInfo: {
    fields: {
      "@type": `'${TYPE}.ErrorInfo'!`,
      reason: "Reason!",
      domain: "Domain!",
      metadata: "ErrorMetadata",
    },
  },
  Reason: { type: "string", pattern: "^[A-Z][A-Z0-9_]*[A-Z0-9]$" },
  Domain: { enum: ["a2a-protocol.org", "errand"] },
  ErrorMetadata: {
    type: "object",
    propertyNames: { pattern: "^[a-z][A-Za-z0-9]*$" },
    additionalProperties: { type: "string" },
  },
  BadRequest: { fields: { "@type": `'${TYPE}.BadRequest'!`, fieldViolations: "FieldViolation[]!" } },
  FieldViolation: { fields: { field: "string!", description: "string+" } },
  /** The first is an ErrorInfo; a BadRequest may follow. */
  Details: {
    type: "array",
    items: [{ $ref: "#/definitions/ErrorInfo" }, { $ref: "#/definitions/BadRequest" }],
    minItems: 1,
    additionalItems: false,
  },
  RpcError: { fields: { code: "int!", message: "string+", data: "Details!" } },
  /** A google.rpc.Status as HTTP+JSON writes it. */
  HttpError: { fields: { error: "Status!" } },
  Status: { fields: { code: "int!", status: "Reason!", message: "string+", details: "Details!" } },
};
