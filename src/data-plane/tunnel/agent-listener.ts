/** The door for agents: listens, and lets in agents that have a credential. */
import type { SecureVersion } from 'node:tls'
import type { ConnectionCaps } from '../../lib/net/connection-caps.ts'
import { type MeetVisitor, meetAdmitted, meetVisitors } from '../../lib/net/trusted-hop.ts'
import { Acceptor, type AcceptorOptions } from './acceptor.ts'
import { AgentConnection } from './agent-connection.ts'
import type { ListenerContext } from './listener-context.ts'
import { type ListenerLimits, listenerLimits } from './tunnel-limits.ts'

export interface AgentListenerOptions
  extends Omit<ListenerContext, 'limits' | 'planeId' | 'planeCount'>,
    Partial<Pick<ListenerContext, 'planeId' | 'planeCount'>>,
    Pick<AcceptorOptions, 'certificate' | 'certificateFor' | 'descriptors'> {
  /** The lowest TLS version that agents may use; 1.2 by default. */
  readonly tlsMinVersion?: SecureVersion
  /** Finds the source of a connection behind a load balancer; by default, the peer itself. */
  readonly meet?: MeetVisitor
  /** Limits on connections; none by default. */
  readonly caps?: ConnectionCaps
  readonly limits?: Partial<ListenerLimits>
}

export class AgentListener extends Acceptor {
  constructor({
    certificate,
    certificateFor,
    tlsMinVersion = 'TLSv1.2',
    meet = meetVisitors([]),
    caps,
    limits,
    descriptors,
    planeId = '',
    planeCount = 1,
    ...given
  }: AgentListenerOptions) {
    const door: ListenerContext = { ...given, planeId, planeCount, limits: { ...listenerLimits, ...limits } }
    super({
      certificate,
      certificateFor,
      tlsMinVersion,
      meet: given.admits ? meetAdmitted(meet, given.admits) : meet,
      caps,
      limits: door.limits,
      now: given.now,
      log: given.log,
      descriptors,
      onConnection: (transport, trial) => {
        new AgentConnection({ transport, peer: trial.peer, outcome: trial, door })
      },
    })
  }
}
