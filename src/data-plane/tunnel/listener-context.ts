/** What all parts of the agents' listener share. */
import type { PlaneContext } from '../../model/plane-context.ts'
import type { Authenticating } from './authenticate-agent.ts'
import type { Online } from './online-tunnels.ts'
import type { ListenerLimits } from './tunnel-limits.ts'

export interface ListenerContext extends Authenticating, Pick<PlaneContext, 'admits'> {
  readonly online: Online
  /** The version of this server. */
  readonly version: string
  readonly limits: ListenerLimits
  /** This data plane, and how many there are; agents may have a connection to each. */
  readonly planeId: string
  readonly planeCount: number
  /** This node among others, if there may be any. */
  readonly nodes?: AgentNodes | undefined
}

/** The nodes that an agent may choose from. */
interface AgentNodes {
  /** This one's id. */
  readonly id: string
  /** Where the others accept agents, as `host:port`. */
  addresses(): readonly string[]
}

/** Where a connection comes from. */
export interface AgentPeer {
  readonly ip: string
  readonly port: number
}
