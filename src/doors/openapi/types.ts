/** The parts of OpenAPI 3.1 that we use. */
import type * as z from "zod";

export type Io = "input" | "output";
export type Named<T> = Readonly<Record<string, T>>;
export type Schema = z.core.JSONSchema.BaseSchema;

export interface Ref {
  readonly $ref: string;
}
export interface Parameter {
  readonly name: string;
  readonly in: "path" | "query" | "header";
  readonly required: boolean;
  readonly description: string;
  readonly schema: Schema;
  readonly style?: "form";
  readonly explode?: boolean;
}
export interface Header {
  readonly description: string;
  readonly schema: Schema;
}
export type Content = Named<{ readonly schema: Schema }>;
export interface ResponseSpec {
  readonly description: string;
  readonly headers?: Named<Ref>;
  readonly content?: Content;
}
/** Our extension: what the operation streams to a client that accepts server-sent events. */
export interface EventStreamSpec {
  readonly description: string;
  readonly schema: Ref;
}
export interface Operation {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly summary: string;
  readonly description: string;
  readonly parameters?: readonly (Parameter | Ref)[];
  readonly requestBody?: { readonly required: boolean; readonly content: Content };
  readonly responses: Named<ResponseSpec | Ref>;
  readonly "x-event-stream"?: EventStreamSpec;
  /** Overrides that of the document. */
  readonly security?: readonly Named<readonly string[]>[];
}
export interface Info {
  readonly title: string;
  readonly version: string;
  readonly description: string;
}
export interface Document {
  readonly openapi: "3.1.0";
  readonly info: Info;
  readonly servers: readonly { readonly url: string }[];
  readonly security: readonly Named<readonly string[]>[];
  readonly tags: readonly { readonly name: string; readonly description: string }[];
  readonly paths: Named<Named<Operation>>;
  readonly components: {
    readonly schemas: Named<Schema>;
    readonly parameters: Named<Parameter>;
    readonly headers: Named<Header>;
    readonly responses: Named<ResponseSpec>;
    readonly securitySchemes: Named<object>;
  };
}
