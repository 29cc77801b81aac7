/**
 * Every action × phase × protocol × kind of address, over real sockets: either its effect is observed, or the policy is
 * refused on save with a message that names the position. The rows are derived from the registry of actions.
 */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { refusedActions } from '../../src/modules/policy/engine/accept.ts'
import { type ActionName, actionNames, actions } from '../../src/modules/policy/engine/actions.ts'
import type { Phase } from '../../src/modules/policy/engine/policy-phases.ts'
import { until } from '../support/until.ts'
import { type Recorder, recorder } from './edges/upstreams.ts'
import { World } from './edges/world.ts'
import {
  type Around,
  type ConnectSample,
  type HttpSample,
  REFUSED,
  type Sample,
  SERVICE_TEXT,
  samples,
  WELCOME,
} from './policy-table.ts'
import {
  type Address,
  agentEndpoints,
  type Protocol,
  protocols,
  storedEdges,
  type Visited,
} from './policy-table-addresses.ts'
import { askedServices } from './policy-table-services.ts'

const kinds = ['stored edge', 'agent endpoint'] as const
type Kind = (typeof kinds)[number]

const lists: Readonly<Record<Phase, string>> = {
  connect: 'on_tcp_connect',
  request: 'on_http_request',
  response: 'on_http_response',
}
const phases = Object.keys(lists) as Phase[] // keys of that very table

let world: World
let service: Recorder
let addresses: Readonly<Record<Kind, Readonly<Record<Protocol, Address>>>>
let services: Omit<Around, 'mark'>
let rows = 0

before(async () => {
  world = await World.start({ flags: { 'outbound-allow': '127.0.0.0/8' } })
  service = await recorder(world, (request, response) => {
    response.statusCode = request.url?.startsWith('/fail') ? 500 : 200
    response.setHeader('x-from', 'service')
    response.setHeader('content-type', 'text/plain')
    response.end(SERVICE_TEXT)
  })
  services = await askedServices(world)
  addresses = {
    'stored edge': await storedEdges(world, service),
    'agent endpoint': await agentEndpoints(world, service),
  }
})
after(() => world.stop())

/** The phases that traffic of a protocol has. */
function phasesOf(protocol: Protocol): readonly Phase[] {
  return protocol === 'http' || protocol === 'https' ? ['request', 'response'] : ['connect']
}

/** Expressions that make a rule of a connection run before the handshake, or after it. */
const conditions: Partial<Record<Protocol, string>> = {
  tcp: 'conn.server_port > 0',
  'tls passed through': "conn.tls.sni.endsWith('.edge.test')",
  'tls ended': "conn.tls.version == '1.3'",
}

function around(): Around {
  return { mark: `row-${++rows}-of-the-table`, ...services }
}

test('every action has a sample for each of its phases, and for no other', () => {
  assert.deepEqual(Object.keys(samples).sort(), [...actionNames].sort())
  for (const name of actionNames) {
    assert.deepEqual(Object.keys(samples[name]).sort(), [...actions[name].phases].sort(), name)
  }
})

for (const kind of kinds) {
  for (const protocol of protocols) {
    describe(`${kind}, ${protocol}`, () => {
      for (const name of actionNames) {
        for (const phase of phases) row(name, phase, protocol, kind)
      }
      for (const type of Object.keys(refusedActions)) {
        test(`${type} is refused with what to use instead`, async () => {
          for (const phase of phasesOf(protocol)) {
            const policy = { [lists[phase]]: [{ actions: [{ type, config: { url: 'https://a.internal' } }] }] }
            const refusal = refusalOf(await addresses[kind][protocol].put(policy))
            assert.ok(refusal.includes(`${lists[phase]}[0].actions[0].type\` is \`${type}\``), refusal)
            assert.match(refusal, /is not supported.*(backend|tls_termination)/)
          }
        })
      }
    })
  }
}

function row(name: ActionName, phase: Phase, protocol: Protocol, kind: Kind): void {
  const isPossible = phasesOf(protocol).includes(phase) && actions[name].phases.includes(phase)
  test(`${name} in ${lists[phase]} ${isPossible ? 'works' : 'is refused'}`, async () => {
    const address = addresses[kind][protocol]
    if (!isPossible) return isRefused(name, phase, protocol, address)
    const sample: Sample = samples[name]
    if (phase === 'connect') {
      assert.ok(sample.connect, 'there is no sample')
      return works(name, sample.connect, protocol, address)
    }
    const given = sample[phase]
    assert.ok(given, 'there is no sample')
    return kind === 'stored edge' && protocol === 'http'
      ? isSentAway(name, phase, given, address)
      : acts(name, phase, given, address)
  })
}

async function isRefused(name: ActionName, phase: Phase, protocol: Protocol, address: Address): Promise<void> {
  const [any] = Object.values(samples[name])
  const config = any?.config?.(around())
  const refusal = refusalOf(await address.put({ [lists[phase]]: [{ actions: [{ type: name, config }] }] }))
  // If the protocol does not have the list, the message is about the list; otherwise about the action.
  const isThere = phasesOf(protocol).includes(phase)
  const at = isThere ? `${lists[phase]}[0].actions[0].type\` is \`${name}\`` : `: ${lists[phase]}\` does not happen on`
  assert.ok(refusal.includes(at), refusal)
}

function refusalOf(outcome: Awaited<ReturnType<Address['put']>>): string {
  assert.ok('refusal' in outcome, 'the policy was accepted')
  return outcome.refusal
}

async function accepted(address: Address, policy: object): Promise<Visited> {
  const outcome = await address.put(policy)
  assert.ok(!('refusal' in outcome), 'refusal' in outcome ? outcome.refusal : '')
  return outcome
}

/** On connections: one visitor is affected by the action, the other is not. */
async function works(
  name: string,
  { config, effect }: ConnectSample,
  protocol: Protocol,
  address: Address,
): Promise<void> {
  const about = around()
  const expressions = [conditions[protocol] ?? 'true', `conn.client_ip == '${REFUSED}'`]
  const rule = { name: about.mark, expressions, actions: [{ type: name, config: config?.(about) }] }
  const { isReached } = await accepted(address, { on_tcp_connect: [rule] })
  assert.equal(await isReached(WELCOME), true)
  assert.equal(await isReached(REFUSED), effect === 'logs')
  if (effect === 'logs') await isLogged(about.mark)
}

/** On requests and responses, over each version of HTTP that the address has. */
async function acts(name: string, phase: Phase, sample: HttpSample, address: Address): Promise<void> {
  const about = around()
  let versions: Visited['versions'] = ['1.1']
  for (let i = 0; i < versions.length; i++) {
    // Set again for each version, so that no counts are left from the one before.
    const visited = await accepted(address, policyOf(name, phase, sample, { ...about, mark: `${about.mark}-${i}` }))
    versions = visited.versions
    for (const make of sample.exchanges) {
      const { ask = {}, look } = make(about)
      const before = service.seen.length
      const answer = await visited.ask({ version: versions[i] ?? '1.1', ...ask }).catch(() => undefined)
      look(answer, service.seen.slice(before).at(-1))
    }
    if (sample.isLogged) await isLogged(`${about.mark}-${i}`)
  }
}

/** D42a: the plain listener redirects visitors of an HTTPS edge, and no rule runs. */
async function isSentAway(name: string, phase: Phase, sample: HttpSample, address: Address): Promise<void> {
  const visited = await accepted(address, policyOf(name, phase, sample, around()))
  const before = service.seen.length
  const { status, headers } = await visited.ask({ path: '/in' })
  assert.equal(status, 307)
  assert.match(String(headers.location), /^https:\/\/[\w.]+\.edge\.test:\d+\/in$/)
  assert.equal(service.seen.length, before)
}

function policyOf(name: string, phase: Phase, { config, when, after: rest = [] }: HttpSample, about: Around): object {
  const expressions = when === undefined ? [] : [when]
  const rule = { name: about.mark, expressions, actions: [{ type: name, config: config?.(about) }] }
  return { [lists[phase]]: [rule, ...rest] }
}

async function isLogged(mark: string): Promise<void> {
  await until('the line is in the log', () => world.platform.log.some((line) => line.includes(mark)))
}
