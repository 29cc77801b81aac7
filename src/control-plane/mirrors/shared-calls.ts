/** The calls that the control plane answers alike for every data plane, and what planes need of other nodes. */

import type { ControlCalls, OtherNode, PlaneCalls } from '../../link/planes/plane-calls.ts'
import type { FormerLabelTunnel } from '../../model/former-labels.ts'
import type { AllNodes } from '../directory/directory.ts'
import type { Followed } from '../store/feed-follower.ts'

/** The calls whose answer does not depend on the plane that asks. */
export type SharedCalls = Omit<
  ControlCalls,
  | 'attach'
  | 'bind'
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

/** The other nodes, as far as data planes need them. */
export interface ClusterOfPlanes {
  readonly allNodes: AllNodes
  /** The nodes that data planes reach. */
  readonly reached: readonly OtherNode[]
  /** See `Cluster`. */
  returning(sessionId: string, isMoving: boolean): Promise<readonly FormerLabelTunnel[]>
  proveAlive(place: string): Promise<boolean>
  /** Whether this node is about to stop, and others know it. */
  isKnownToLeave(): Promise<boolean>
  ports(send: (change: Parameters<PlaneCalls['distantPorts']>[0]) => Promise<unknown>): Followed
}
