/** For tests: nodes with one authority on loopback, each with a door, links to the others, and tunnels. */
import { duplexPair } from 'node:stream'
import { createLog } from '../../../lib/log/create-log.ts'
import type { ListenOn } from '../../../lib/net/listen-on.ts'
import { Authority, createAuthority } from '../../../lib/x509/certificate-authority.ts'
import type { ConnectNodeOptions } from '../../../link/planes/connect-node.ts'
import type { AnswerNode, NodeCallsOptions } from '../../../link/planes/node-calls.ts'
import { createNodeIdentity } from '../../../link/planes/node-identity.ts'
import { NodeLinks, type NodeLinksOptions } from '../../../link/planes/node-links.ts'
import { AnsweredCalls, PassedCalls } from '../../../link/planes/passed-calls.ts'
import type { Dial, DialRequest } from '../../../model/dial.ts'
import { NodeListener, type NodeListenerOptions } from '../node-listener.ts'
import { TestTunnel } from './test-tunnel.ts'

const log = createLog({ level: 'silent' })

export function newAuthority(): Authority {
  const { certPem, keyPem } = createAuthority()
  return new Authority(certPem, keyPem)
}

export interface TestNodeOptions {
  readonly planeId?: string
  readonly on?: ListenOn
  readonly dial?: Dial
  readonly answer?: AnswerNode
  readonly listener?: Partial<NodeListenerOptions>
  readonly calls?: Pick<NodeCallsOptions, 'askMs' | 'answerMs' | 'maxCalls'>
  readonly passed?: { readonly idleMs?: number; readonly maxCalls?: number }
  readonly links?: Partial<NodeLinksOptions>
  readonly authority?: Authority
}

export interface TestNode {
  readonly listener: NodeListener
  readonly links: NodeLinks
  readonly port: number
  /** What was dialled here, and the tunnels that were reached: by default a new one for each dial. */
  readonly asked: DialRequest[]
  readonly tunnels: TestTunnel[]
  close(): Promise<void>
}

/** Nodes that know each other's addresses. */
export class TestNodes {
  readonly authority = newAuthority()
  readonly addresses = new Map<string, ConnectNodeOptions['address']>()
  readonly #started: TestNode[] = []

  async start(nodeId: string, options: TestNodeOptions = {}): Promise<TestNode> {
    const { planeId = 'w1', on = { host: '127.0.0.1', port: 0 }, authority = this.authority, dial, answer } = options
    const identity = createNodeIdentity({ nodeId, planeId }, authority)
    const asked: DialRequest[] = []
    const tunnels: TestTunnel[] = []
    const answered = new AnsweredCalls({
      ...options.calls,
      answer: answer ?? (async (from, value) => ({ from, value })),
      log,
    })
    const passed = new PassedCalls({
      ...options.passed,
      connect: () => {
        const [ours, theirs] = duplexPair()
        answered.take(theirs)
        return ours
      },
    })
    const listener = new NodeListener({
      ...{ identity, log },
      answer: (stream, from) => passed.accept(stream, from),
      dial: async (request) => {
        asked.push(request)
        if (dial) return dial(request)
        const tunnel = new TestTunnel()
        tunnels.push(tunnel)
        return tunnel
      },
      serves: (holders) => holders.map(() => false),
      ...options.listener,
    })
    const { port } = await listener.listen(on)
    this.addresses.set(nodeId, { host: '127.0.0.1', port })
    const links = new NodeLinks({ identity, log, addressOf: (id) => this.addresses.get(id), ...options.links })
    const close = async (): Promise<void> => {
      links.close()
      await listener.close()
      passed.close()
      answered.close()
    }
    const node = { listener, links, port, asked, tunnels, close }
    this.#started.push(node)
    return node
  }

  async close(): Promise<void> {
    for (const node of this.#started) await node.close()
  }
}
