/**
 * The public API of the library, a client of the broker's HTTP API. Nothing here needs Node; a bundler drops the parts
 * that a page does not use.
 */
export {
  Admin,
  type CallOptions,
  type NewToken,
  type PageOptions,
} from "./client/admin.ts";
export { Agent, type AgentOptions } from "./client/agent.ts";
export { agentLoad } from "./client/agent-load.ts";
export type { Answer, Answers, DecideOptions } from "./client/answer.ts";
export type { ChunkOptions } from "./client/artifacts.ts";
export type { BatchInput, BatchOptions, BatchResult } from "./client/batch.ts";
export type { BulkFilter, BulkOptions } from "./client/bulk.ts";
export {
  CallbackError,
  type CallbackFault,
  type CallbackHeaders,
  type VerifyOptions,
  verifyCallback,
} from "./client/callback.ts";
export { type Delegated, Delegator } from "./client/delegator.ts";
export type {
  AnswerOptions,
  CancelOptions,
  ControlOptions,
  DelegateOptions,
  EventFilter,
  GetOptions,
  Instant,
  ListOptions,
  TaskInput,
  WaitOptions,
  WatchOptions,
} from "./client/delegator-options.ts";
export { Download, type Downloadable, type DownloadOptions } from "./client/download.ts";
export { ErrandApiError } from "./client/errors.ts";
export { explainWait } from "./client/explain-wait.ts";
export { bytesOf, dataOf, type FileOptions, filePart } from "./client/files.ts";
export { HandlerTimeoutError } from "./client/handler-limits.ts";
export type { ConnectionOptions } from "./client/http.ts";
export type { Result, ResultsOptions } from "./client/inbox.ts";
export type { OutageEvent } from "./client/outage.ts";
export type { FileContent } from "./client/pieces.ts";
export type { Answered, AskOptions, ProposedAction, Question, QuestionOutcome } from "./client/questions.ts";
export { type RuleListOptions, type RuleOptions, Rules } from "./client/rules.ts";
export { type ScheduleOptions, Schedules } from "./client/schedules.ts";
export { Subscriptions } from "./client/subscriptions.ts";
export type { Branch } from "./client/tree.ts";
export { InvalidDataError, type TypedSchema } from "./client/typed-schema.ts";
export { WorkerUnavailableError, type WorkerUnavailableOptions } from "./client/unavailable.ts";
export type { UploadOptions } from "./client/upload.ts";
export { sumUsage, type UsageOfAll } from "./client/usage.ts";
export type { WaitedChild, WaitedFor, WaitForOptions } from "./client/wait-for.ts";
export {
  type AgentEvent,
  AgentStoppingError,
  type BareMessage,
  type DataReply,
  type Handler,
  type Outcome,
  type ReleaseOptions,
  type ReleaseOrCancel,
  type Reply,
  type Work,
} from "./client/work.ts";
export {
  CutOffError,
  LeaseLostError,
  type LostReason,
  OverBudgetError,
  ParkedError,
} from "./lease-holder/lost.ts";
export { type Artifact, type Message, type MessageInput, type Part, textOf } from "./schema/a2a.ts";
export type { Agent as AgentInfo, AgentChange, AgentInput, AgentPatch, Worker } from "./schema/agent.ts";
export type { AgentLoad } from "./schema/agent-load.ts";
export type { AnswersFilter, AnswerWay, SettledQuestion, SettledRequest } from "./schema/answered.ts";
export type { AuditAction, AuditEntry, AuditFilter } from "./schema/audit.ts";
export type { Budget, BudgetShown, PeriodBudgets, PeriodBudgetsShown } from "./schema/budget.ts";
export type { Callback } from "./schema/callback.ts";
export {
  type DelegateInput,
  type Delegation,
  type DelegationError,
  type DelegationFilter,
  type Interrupt,
  isTerminal,
  type Progress,
  type State,
} from "./schema/delegation.ts";
export type { Category } from "./schema/errors.ts";
export type { DelegationEvent, EventType, StreamEvent } from "./schema/event.ts";
export type { AnswerBody } from "./schema/interrupt.ts";
export type { Presence } from "./schema/presence.ts";
export type { Problem } from "./schema/problem.ts";
export { type Risk, type RiskRule, riskOf } from "./schema/risk.ts";
export type { ArgumentConstraint, Rule, RuleUse } from "./schema/rule.ts";
export type { RuleInput } from "./schema/rule-request.ts";
export type { Schedule, ScheduleInput, SchedulePatchInput, ScheduleRun } from "./schema/schedule.ts";
export type { ListedSession, NewSession, Session, SessionCode } from "./schema/session.ts";
export type {
  AgentFigures,
  Durations,
  Stats,
  StatsBucket,
  StatsFilter,
  StatsPeriod,
} from "./schema/stats.ts";
export type { Status } from "./schema/status.ts";
export type {
  Channel,
  Notification,
  Subscription,
  SubscriptionInput,
  SubscriptionPatchInput,
  SubscriptionTest,
} from "./schema/subscription.ts";
export type { TokenInfo } from "./schema/token.ts";
export type { NodeEvent, Tree, TreeEvent, TreeNode } from "./schema/tree.ts";
export type { Usage, UsageReport, UsageSum } from "./schema/usage.ts";
export type { Checkpoint } from "./schema/values.ts";
export type { QuestionVotes, Vote, Votes } from "./schema/votes.ts";
