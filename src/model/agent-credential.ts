/** What an agent proves itself with, as the doors of agents and of SSH know it. */
export interface AgentCredential {
  readonly id: string
  /** D18: empty is unrestricted. */
  readonly acl: readonly string[]
  /** The user or bot user that it belongs to; an earlier version of the control plane does not tell. */
  readonly ownerId?: string | undefined
}
