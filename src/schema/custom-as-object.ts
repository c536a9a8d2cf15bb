import * as z from "zod";

/** The option `unrepresentable` of `z.toJSONSchema`: our custom schemas are objects. */
export const customAsObject = ({ zodSchema }: { readonly zodSchema: z.core.$ZodType }) =>
  zodSchema instanceof z.ZodCustom
    ? { type: "object" as const, additionalProperties: {} }
    : ("throw" as const);
