/** A JSON Schema in a request body: of a question, or of the result of a delegation. */
import * as z from "zod";
import { schemaIssues } from "./check-schema.ts";

/** A JSON Schema that the broker can enforce, up to 64 KiB. */
export const jsonSchemaSchema = z.unknown().superRefine((schema, context) => {
  if (schema === undefined) return;
  for (const { path, reason } of schemaIssues(schema)) {
    context.addIssue({ code: "custom", message: reason, path: path === "" ? [] : path.split(".") });
  }
});
