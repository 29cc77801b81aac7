/** The credential that an agent authenticated with, as the listeners for agents and for SSH know it. */
export interface AgentCredential {
  readonly id: string
  /** D18: empty is unrestricted. */
  readonly acl: readonly string[]
  /** The user or bot user that it belongs to; earlier versions of the control plane do not send it. */
  readonly ownerId?: string | undefined
}
