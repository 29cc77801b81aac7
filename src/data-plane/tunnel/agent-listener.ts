/** Listens for agents, and lets in those that have a credential. */

import type { SecureVersion } from 'node:tls'
import type { PlaneContext } from '../../model/plane-context.ts'
import { Acceptor, type AcceptorOptions } from './acceptor.ts'
import { AgentConnection } from './agent-connection.ts'
import type { ListenerContext } from './listener-context.ts'
import { type ListenerLimits, listenerLimits } from './tunnel-limits.ts'

export interface AgentListenerOptions
  extends Omit<ListenerContext, 'limits' | 'planeId' | 'planeCount'>,
    Pick<PlaneContext, 'meet' | 'caps' | 'descriptors'>,
    Pick<AcceptorOptions, 'certificate' | 'certificateFor'> {
  /** The lowest TLS version that agents may use; 1.2 by default. */
  readonly tlsMinVersion?: SecureVersion
  readonly limits?: Partial<ListenerLimits>
  /** This data plane, and how many there are; by default it is the only one. */
  readonly planeId?: string
  readonly planeCount?: number
}

export class AgentListener extends Acceptor {
  constructor({
    certificate,
    certificateFor,
    tlsMinVersion = 'TLSv1.2',
    limits,
    planeId = '',
    planeCount = 1,
    ...given
  }: AgentListenerOptions) {
    const context = { ...given, planeId, planeCount, limits: { ...listenerLimits, ...limits } }
    super({
      ...context,
      ...{ certificate, certificateFor, tlsMinVersion },
      onConnection: (transport, trial) => {
        new AgentConnection({ transport, peer: trial.peer, outcome: trial, listener: context })
      },
    })
  }
}
