/** A policy that hangs on nothing yet, and what a dry run is told of its rules: `edge/` knows the module, not the engine. */
import type { Described } from '../../model/described.ts'
import type { EdgeConfig, ModuleSettings } from '../../model/edge-config.ts'
import type { ExplainedRule } from '../../model/explanation.ts'
import { type NotesOptions, PolicyNotes } from '../../policy/explain-notes.ts'
import type { Lookup, ModuleConfig, Place } from '../module.ts'
import type { DryRun } from '../tools.ts'
import { policy } from './index.ts'

/** Writes down what the rules of policies do, for whoever takes it step by step. */
export type RuleNotes = DryRun['policy'] & { take(): readonly ExplainedRule[] }

export function policyNotes(options: NotesOptions): RuleNotes {
  return new PolicyNotes(options)
}

/** Where a policy stands that such traffic goes through; undefined when none is described. */
export function placeFor({ request, connection }: Pick<Described, 'request' | 'connection'>): Place | undefined {
  if (request) return 'route'
  if (!connection) return undefined
  const { protocol, server_name, tls } = connection
  return protocol || (server_name !== '' || tls ? 'tls' : 'tcp')
}

/** What it is called where it is not stored. */
const DRY_RUN = 'dry_run'

/** An edge that has nothing but this policy, which was accepted, and answers to every name that is asked for. */
export function policyEdge(config: ModuleConfig, place: Place, asked: Described, lookup: Lookup): EdgeConfig {
  // What `accept` of the module gave.
  const given = config as Parameters<NonNullable<typeof policy.resolve>>[0]
  const settings = policy.resolve?.(given, lookup, place)
  const backend = { kind: 'tunnel', tunnelId: DRY_RUN, httpVersion: 1, proxyHeader: 0 }
  const modules: ModuleSettings = { backend, ...(config.enabled && { policy: settings }) }
  const edge = { id: DRY_RUN, names: namesIn(asked), ports: [], modules: {}, routes: [] }
  if (place === 'route') {
    const route = { id: DRY_RUN, matchType: 'path_prefix', match: '/', modules } as const
    return { ...edge, kind: 'https', routes: [route] }
  }
  const terminates = place === 'tls' && policy.needs(given) !== 'bytes'
  const termination = { tls_termination: { terminate: 'edge', minVersion: '1.0' } }
  return { ...edge, kind: place === 'tls' ? 'tls' : 'tcp', modules: { ...modules, ...(terminates && termination) } }
}

/** The names that described traffic asks for; what is no name is for the edge to refuse. */
function namesIn({ request, connection }: Described): string[] {
  const [, ofUrl = ''] = /^https?:\/\/([^/?#]*)/i.exec(request?.url ?? '') ?? []
  const [, ofHeader] = Object.entries(request?.headers ?? {}).find(([name]) => name.toLowerCase() === 'host') ?? []
  const named = [ofUrl, ofHeader?.[0] ?? ''].map((authority) => authority.toLowerCase().replace(/\.?(:\d*)?$/, ''))
  const names = [...named, connection?.server_name.toLowerCase() ?? ''].filter((name) => name !== '')
  return names.length === 0 ? [USUAL_NAME] : names
}

/** RFC 2606 */
const USUAL_NAME = 'example.com'
