/** For tests: a door on a free port, with credentials and endpoints that tests can look into. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { whyNotAllowed } from '../../../control-plane/directory/grant-binds.ts'
import { IdSource } from '../../../lib/ids.ts'
import { createLog } from '../../../lib/log/create-log.ts'
import { Sealer } from '../../../lib/secrets/seal.ts'
import type { Secret } from '../../../lib/secrets/secret.ts'
import type { AuthAnswer, AuthRequest } from '../../../link/wire/messages/auth.ts'
import { refusals } from '../../../model/agent-errors.ts'
import { FormerLabels } from '../../../model/former-labels.ts'
import { AgentListener, type AgentListenerOptions } from '../agent-listener.ts'
import {
  type AgentCredential,
  BindRefusal,
  type EndpointRequest,
  noRemoteTunnels,
  type OpenEndpoint,
  type RemoteTunnels,
} from '../interfaces.ts'
import { Online, type OnlineOptions } from '../online-tunnels.ts'
import { Registry } from '../registry.ts'
import { type AgentOptions, type Outcome, TestAgent, TOKEN } from './raw-agent.ts'
import { type Answers, testControl } from './test-control.ts'

class TestCredentials {
  /** Credentials by their tokens. */
  readonly all = new Map<string, AgentCredential>([[TOKEN, { id: 'cr_test', acl: [] }]])
  isAway = false
  looks = 0

  async find(token: Secret): Promise<AgentCredential | undefined> {
    this.looks++
    if (this.isAway) throw new Error('the store is away')
    return this.all.get(token.reveal())
  }

  async current(id: string): Promise<AgentCredential | undefined> {
    if (this.isAway) throw new Error('the store is away')
    return [...this.all.values()].find((credential) => credential.id === id)
  }

  /** Changes the ACL of the one credential that tests use. */
  restrict(...acl: string[]): void {
    this.all.set(TOKEN, { id: 'cr_test', acl })
  }
}

/** The domain of the server. */
export const DOMAIN = 'example.test'

/** Decides like the control plane whether a credential allows an address. */
export class TestEndpoints {
  /** Open endpoints, by protocol and address. */
  readonly served = new Map<string, EndpointRequest>()
  /** Addresses that somebody else has. */
  readonly taken = new Set<string>()
  /** Awaited before anything opens. */
  gate: Promise<void> = Promise.resolve()
  /** Thrown instead of opening anything. */
  failure: Error | undefined
  asked = 0
  readonly #current: (id: string) => Promise<AgentCredential | undefined>

  constructor(current: (id: string) => Promise<AgentCredential | undefined>) {
    this.#current = current
  }

  async open(request: EndpointRequest): Promise<OpenEndpoint | BindRefusal> {
    const { proto, host, port, credentialId } = request
    const credential = await this.#current(credentialId).catch(() => refusals.storeAway())
    if (credential instanceof BindRefusal) return credential
    const refusal = credential ? whyNotAllowed(credential, request, { domain: DOMAIN }) : refusals.credentialGone()
    if (refusal) return refusal
    this.asked++
    await this.gate
    if (this.failure) throw this.failure
    const address = port === undefined ? `${proto}://${host}` : `${proto}://${host}:${port}`
    if (this.served.has(address) || this.taken.has(address) || this.taken.has('*')) {
      return new BindRefusal(334, `${address} is online already.`, { isTaken: true })
    }
    this.served.set(address, request)
    return {
      url: address,
      hostport: `${host}:${port ?? 443}`,
      served: {
        config: { id: request.id, kind: proto, names: [], ports: [], modules: {}, routes: [] },
        version: '1',
        isUnnamed: false,
      },
      handOver: () => void this.served.delete(address),
      close: () => {
        assert.equal(this.served.delete(address), true, `${address} was closed twice`)
      },
    }
  }

  get addresses(): string[] {
    return [...this.served.keys()]
  }
}

interface Identity {
  readonly certificatePem: string
  readonly privateKeyPem: string
}

export interface TestAgentListenerOptions
  extends Partial<
    Omit<
      AgentListenerOptions & OnlineOptions,
      'online' | 'credentials' | 'endpoints' | 'certificate' | 'log' | 'control' | 'registry'
    >
  > {
  /** How the control plane answers. */
  readonly answers?: Answers
  readonly remote?: Partial<RemoteTunnels>
}

export class TestAgentListener {
  readonly credentials = new TestCredentials()
  readonly endpoints = new TestEndpoints((id) => this.credentials.current(id))
  /** Lines of the log, as objects. */
  readonly logged: Record<string, unknown>[] = []
  readonly tunnels: Online
  readonly listener: AgentListener
  #port = 0

  constructor(
    { certificatePem: cert, privateKeyPem: key }: Identity,
    { answers, remote, ...options }: TestAgentListenerOptions = {},
  ) {
    const destination = { write: (line: string) => this.logged.push(JSON.parse(line)) }
    const shared = {
      credentials: this.credentials,
      seal: new Sealer(randomBytes(32)),
      ids: new IdSource({ now: Date.now }),
      now: Date.now,
      log: createLog({ level: 'debug', format: 'json', destination }),
      ...options,
    }
    const control = testControl({ ...this.#answers(), ...answers })
    const registry = new Registry({ region: 'local', control })
    registry.attach({ ...noRemoteTunnels, ...remote })
    this.tunnels = new Online({
      endpoints: this.endpoints,
      ...{ control, registry },
      random: randomBytes,
      domain: DOMAIN,
      tcpPorts: { from: 20_000, to: 20_009 },
      publicPorts: () => ({ http: 8080, https: 8443 }),
      ...shared,
    })
    this.listener = new AgentListener({ certificate: { cert, key }, version: '9.9.9', ...shared, online: this.tunnels })
  }

  /** The tunnels of a session are remembered as the control plane does. */
  #answers(): Answers {
    const former = new FormerLabels()
    return {
      currentCredential: ({ id }) => this.credentials.current(id),
      sessionEnded: ({ sessionId }) => {
        const tunnels = this.registry.liveSession(sessionId)?.tunnels.values() ?? []
        const labelled = [...tunnels].flatMap(({ id, startedAt, labels }) =>
          labels ? [{ id, startedAt, labels }] : [],
        )
        former.remember(sessionId, labelled)
      },
      returning: async ({ sessionId }) => {
        this.registry.liveSession(sessionId)?.end('its agent reconnected on another connection')
        return former.take(sessionId)
      },
    }
  }

  get registry() {
    return this.tunnels.registry
  }

  get load() {
    return { ...this.tunnels.load, ...this.listener.metrics }
  }

  async close(): Promise<void> {
    this.listener.stop()
    this.tunnels.endAll('the server is stopping')
    await this.listener.closed()
  }

  get port(): number {
    return this.#port
  }

  async listen(port = 0): Promise<this> {
    const address = await this.listener.listen({ host: '127.0.0.1', port })
    this.#port = address.port
    return this
  }

  agent(options: Partial<AgentOptions> = {}): TestAgent {
    return new TestAgent({ port: this.#port, ...options })
  }

  /** An agent that was let in, and the answer that it got. */
  async online(request: Partial<AuthRequest> = {}, options: Partial<AgentOptions> = {}) {
    const agent = this.agent(options)
    return { agent, auth: ok<AuthAnswer>(await agent.authenticate(request)) }
  }

  logLines(msg: string): Record<string, unknown>[] {
    return this.logged.filter((line) => line.msg === msg)
  }
}

/** Fails the test when the agent was refused. */
export function ok<T>(outcome: Outcome<T>): T {
  if (typeof outcome === 'object' && outcome !== null && 'ngrok' in outcome) assert.fail(outcome.message)
  return outcome
}

/** The number of the refusal; fails the test when there was none. */
export function refusedWith(outcome: Outcome<unknown>): number {
  if (typeof outcome === 'object' && outcome !== null && 'ngrok' in outcome) return Number(outcome.ngrok)
  return assert.fail('it was not refused')
}

/** How long a test waits for an expected event, in milliseconds. */
const PATIENCE_MS = 10_000

/** Resolves when `isTrue()` holds; checks again whenever something may have happened. */
export async function until(isTrue: () => boolean): Promise<void> {
  const deadline = performance.now() + PATIENCE_MS
  while (!isTrue()) {
    assert.ok(performance.now() < deadline, 'condition not met in time')
    await new Promise((resolve) => setTimeout(resolve, 1))
  }
}
