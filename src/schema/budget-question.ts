/** The question that the broker itself asks, for a larger budget. An agent's question never has such an id. */
export const isBudgetQuestion = (interrupt_id: unknown): boolean =>
  typeof interrupt_id === "string" && interrupt_id.startsWith("int_budget_");
