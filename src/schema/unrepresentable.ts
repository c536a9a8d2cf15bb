import * as z from "zod";

/** For `z.toJSONSchema`, which knows nothing of a custom schema: ours are objects. */
export const unrepresentable = ({ zodSchema }: { readonly zodSchema: z.core.$ZodType }) =>
  zodSchema instanceof z.ZodCustom
    ? { type: "object" as const, additionalProperties: {} }
    : ("throw" as const);
