/** Our agents at several nodes: some stay, others come and go, and each records when and where it was online. */
import { setTimeout as pause } from 'node:timers/promises'
import { Agent } from '../../src/agent/agent.ts'
import { readTunnel, type TunnelOptions } from '../../src/agent/config/tunnel-options.ts'
import { parseServer } from '../../src/agent/server-address.ts'
import type { AgentTunnel } from '../../src/agent/tunnel.ts'
import { Secret } from '../../src/lib/secrets/secret.ts'
import { OptionReader, type Problem } from '../../src/link/options/option-reader.ts'
import type { Random } from '../fuzz/hostile-documents.ts'
import { AUTHTOKEN } from '../support/cluster.ts'
import { httpUpstream, type Owner, tcpUpstream } from '../support/upstream.ts'
import { type Address, saying } from './node-addresses.ts'
import type { OnlineSpan } from './nodes-verdict.ts'
import type { NodesWorld } from './nodes-world.ts'

/** How often agents are sampled for whether they are online, in milliseconds. */
const SAMPLE_MS = 20

/** How long a coming and going agent stays, and stays away, in milliseconds. */
const STAYS_MS = { least: 500, most: 12_000 }

/** An address, and the tunnel options that request it. */
export interface Wanted {
  readonly address: Address
  readonly options: TunnelOptions
}

export class NodeAgent {
  readonly wanted: Wanted
  readonly spans: OnlineSpan[] = []
  readonly #agent: Agent
  readonly #closers: (() => unknown)[] = []
  #tunnel: AgentTunnel | undefined
  /** The region of the node that it is connected to. */
  #region = ''
  /** What its tunnel got last, and from which node; an agent that moves connects to the new node first. */
  #bound: { readonly got: unknown; readonly node: string } = { got: undefined, node: '' }
  #isClosed = false
  /** Why the server took its address away. */
  lost: string | undefined

  constructor(wanted: Wanted, { server, ca }: { readonly server: string; readonly ca: string }) {
    this.wanted = wanted
    this.#agent = new Agent({
      // With one connection, each span is at one node.
      connections: 1,
      ...{ server: parseServer(server), ca, authtoken: new Secret(AUTHTOKEN), metadata: wanted.address.name },
      ...{ version: '0.0.0', clientType: 'postern-library' },
      onEvent: (event) => {
        if (event.type === 'online' || event.type === 'moved') this.#region = event.region
        if (event.type === 'tunnel-stopped') this.lost = event.message
        this.sample()
      },
    })
  }

  /** Connects and opens its tunnel; rejects if that fails. */
  async come(who: string): Promise<void> {
    const { address, options } = this.wanted
    const owner: Owner = { after: (close) => void this.#closers.unshift(close) }
    const text = saying(address.name, who)
    const service = address.url.startsWith('tcp:')
      ? await tcpUpstream(owner, (socket) => socket.resume().end(text))
      : await httpUpstream(owner, (_, response) => response.end(text))
    try {
      const context = { name: who, readText: () => '', env: {} }
      const problems: Problem[] = []
      const plans = readTunnel(new OptionReader({ ...options, addr: service.port }, problems), context)
      if (!plans || problems.length > 0) throw new Error(`these options are wrong: ${JSON.stringify(problems)}`)
      await this.#agent.start()
      this.#tunnel = await this.#agent.open(plans[0])
      this.sample()
    } catch (error) {
      await this.go()
      throw error
    }
  }

  /** Whether the agent itself believes that it holds its address. */
  get isOnline(): boolean {
    return !this.#isClosed && this.#agent.isOnline && this.#tunnel?.isOnline === true
  }

  /** Whether it should have its address: it got it once, the server has not taken it away, and it is not closed. */
  get isLive(): boolean {
    return !this.#isClosed && this.#tunnel !== undefined && this.lost === undefined
  }

  get tunnelId(): string {
    return this.#tunnel?.tunnelId ?? ''
  }

  /** Notes whether and where it is online now. */
  sample(now = Date.now()): void {
    const got = this.#tunnel?.main.got
    if (got !== this.#bound.got) this.#bound = { got, node: this.#region.replace('r', 'node-') }
    const node = this.isOnline ? this.#bound.node : undefined
    const last = this.spans.at(-1)
    const isOpen = last?.to === Number.POSITIVE_INFINITY
    if (isOpen && last.node === node) return
    if (isOpen) this.spans.splice(-1, 1, { ...last, to: now })
    if (node !== undefined) {
      this.spans.push({ address: this.wanted.address.name, node, from: now, to: Number.POSITIVE_INFINITY })
    }
  }

  async go(): Promise<void> {
    const wasOnline = this.isOnline
    this.#isClosed = true
    this.sample()
    const last = this.spans.at(-1)
    if (wasOnline && last) this.spans.splice(-1, 1, { ...last, isLeft: true })
    await this.#agent.close()
    for (const close of this.#closers.splice(0)) await close()
  }
}

export class NodeAgents {
  readonly #world: NodesWorld
  readonly #all: NodeAgent[] = []
  readonly #sampling: NodeJS.Timeout
  /** Agents that come and go, by kind. */
  readonly #guests = new Map<number, NodeAgent>()
  #loops: Promise<void>[] = []
  #isResting = false
  #count = 0
  /** How often an agent came, and how often it was refused. */
  readonly figures = { came: 0, refused: 0 }

  constructor(owner: Owner, world: NodesWorld) {
    this.#world = world
    this.#sampling = setInterval(() => {
      for (const agent of this.#all) agent.sample()
    }, SAMPLE_MS).unref()
    owner.after(() => this.close())
  }

  /** Agents that should have their address, whether online or not. */
  get live(): readonly NodeAgent[] {
    return this.#all.filter(({ isLive }) => isLive)
  }

  get spans(): OnlineSpan[][] {
    return this.#all.map(({ spans }) => [...spans])
  }

  /** Starts an agent at a node; rejects if it does not get its address. */
  async come(wanted: Wanted, node: number): Promise<NodeAgent> {
    const { cluster, nodes } = this.#world
    const server = nodes[node]?.running.server.agents ?? ''
    const agent = new NodeAgent(wanted, { server, ca: cluster.ca })
    this.#all.push(agent)
    await agent.come(`agent ${++this.#count}`)
    this.figures.came++
    return agent
  }

  /** Agents of these kinds come and go, at any open node, until `rest()`. */
  stir(kinds: readonly (readonly Wanted[])[], random: Random): void {
    this.#isResting = false
    this.#loops = kinds.map((choice, index) => this.#comeAndGo(choice, index, random))
  }

  /** Stops the coming and going; agents that are there stay. */
  async rest(): Promise<void> {
    this.#isResting = true
    await Promise.all(this.#loops)
  }

  async close(): Promise<void> {
    clearInterval(this.#sampling)
    await this.rest()
    await Promise.all(this.live.map((agent) => agent.go()))
  }

  /** Runs one agent at a time, each for one of these addresses. */
  async #comeAndGo(choice: readonly Wanted[], index: number, random: Random): Promise<void> {
    for (;;) {
      await this.#wait(STAYS_MS.least + random(STAYS_MS.most - STAYS_MS.least))
      if (this.#isResting) return
      const guest = this.#guests.get(index)
      this.#guests.delete(index)
      if (guest) await guest.go()
      else await this.#invite(choice, index, random)
    }
  }

  async #invite(choice: readonly Wanted[], index: number, random: Random): Promise<void> {
    const wanted = choice[random(choice.length)]
    const node = random(this.#world.nodes.length)
    if (!wanted || !this.#world.nodes[node]?.isOpen) return
    try {
      this.#guests.set(index, await this.come(wanted, node))
    } catch {
      // Another agent has the address, or the node has a fault.
      this.figures.refused++
    }
  }

  async #wait(ms: number): Promise<void> {
    const end = Date.now() + ms
    while (Date.now() < end && !this.#isResting) await pause(SAMPLE_MS)
  }
}
