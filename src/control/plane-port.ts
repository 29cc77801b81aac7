/** What the control plane answers data planes, apart from what depends on the plane that asks. */
import type { FormerLabelTunnel } from '../model/former-labels.ts'
import type { PoolDifference } from '../model/pool.ts'
import type { ControlCalls, OtherNode, PlaceClaim, PlaneCalls } from '../planes/port.ts'
import type { AllNodes } from './directory.ts'
import type { Followed } from './follower.ts'

/** What is answered alike to every plane. */
export type SharedCalls = Omit<
  ControlCalls,
  | 'attach'
  | 'claim'
  | 'whyTaken'
  | 'unclaim'
  | 'proveAlive'
  | 'returning'
  | 'mayHaveLeg'
  | 'leaving'
  | 'sessionStarted'
  | 'sessionEnded'
  | 'tunnelStarted'
  | 'tunnelChanged'
  | 'tunnelEnded'
  | 'tunnelStopped'
>

/** The other nodes, as far as data planes have to do with them. */
export interface ClusterOfPlanes {
  readonly allNodes: AllNodes
  readonly others: readonly OtherNode[]
  /** See `Cluster`. */
  returning(sessionId: string, isMoving: boolean): Promise<readonly FormerLabelTunnel[]>
  proveAlive(place: string): Promise<boolean>
  /** Whether this node is about to stop, and others know it. */
  isKnownToLeave(): Promise<boolean>
  whyTaken(claim: PlaceClaim): Promise<PoolDifference | undefined>
  ports(send: (change: Parameters<PlaneCalls['distantPorts']>[0]) => Promise<unknown>): Followed
}
