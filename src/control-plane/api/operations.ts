/** The handlers of the route table: each carries out one action, after the caller, the path, the query and the body were checked. */

import { othersTurn } from '../../lib/threads/others-turn.ts'
import type { Presence } from '../../model/presence.ts'
import type { ModuleConfig } from '../../modules/module.ts'
import type { EdgeModules, ModuleTarget } from '../records/edge-modules.ts'
import type { Principal } from '../records/find-caller.ts'
import { loginKind } from '../records/listed-logins.ts'
import type { ManagedCaptures } from '../records/managed-captures.ts'
import { type Presenting, presentKind } from '../records/online-lists.ts'
import type { ResourceTarget } from '../records/ownership.ts'
import type { Records } from '../records/records.ts'
import { show } from '../records/show-resource.ts'
import type { StoredLogins } from '../records/stored-logins.ts'
import { applicationUsers } from '../resources/application-users.ts'
import type { Fields, Resource } from '../resources/resource.ts'
import { tunnels } from '../resources/tunnels.ts'
import type { Explanations } from '../traffic/explanations.ts'
import type { Period } from '../traffic/traffic-counts.ts'
import type { CheckedCall } from './checked-call.ts'
import { type ExchangeSources, exchangeOperations } from './exchange-operations.ts'
import { envelope, missing, oneMore, pageOf, there } from './list-page.ts'
import type { RouteAction } from './routes.ts'

export interface Behind extends ExchangeSources {
  readonly records: Records
  readonly modules: EdgeModules
  readonly presence: Presence
  readonly logins: Pick<StoredLogins, 'read' | 'revoke' | 'revokeUser'>
  /** Asks for an early replacement of an issued certificate. */
  readonly renew: (principal: Principal, target: ResourceTarget) => Promise<void>
  /** Asks for another try to get the certificate of a name. */
  readonly retry: (principal: Principal, resource: Resource, target: ResourceTarget) => Promise<void>
  readonly captures: Pick<ManagedCaptures, 'create' | 'remove'>
  readonly explanations: Pick<Explanations, 'explain'>
  readonly traffic: (period: Period) => Promise<Fields>
  readonly brokenEdges: () => Promise<Fields>
  /** Ids of the tunnel groups that a tunnel with these labels serves. */
  readonly groupsOf: Presenting['groupsOf']
}

/** Runs the handler of a call's route and returns the body of the answer; undefined where it has none. */
export function perform(behind: Behind, call: CheckedCall): Promise<unknown> {
  const { action, handler = action } = call.route
  return handlers[handler](behind, call)
}

const handlers: Readonly<Record<RouteAction, (behind: Behind, call: CheckedCall) => Promise<unknown>>> = {
  async create({ records }, call) {
    const { resource } = call.route
    return show(resource, await records.create(resource, call.principal, call.body, call.parentId), call)
  },
  async list({ records }, call) {
    const { resource } = call.route
    const { records: found, hasMore } = await records.list(resource, call.principal, call.page, call.turn)
    const breath = othersTurn()
    const items: unknown[] = []
    for (const record of found) {
      items.push(show(resource, record, call))
      await breath()
    }
    return envelope(resource, items, hasMore ? found.at(-1)?.id : undefined, call.page, call.links)
  },
  async get({ records }, call) {
    const { resource } = call.route
    if (await records.isLarge(resource, call.target.id)) await call.turn()
    return show(resource, await records.get(resource, call.principal, call.target), call)
  },
  async update({ records }, call) {
    const { resource } = call.route
    if (await records.isLarge(resource, call.target.id)) await call.turn()
    return show(resource, await records.update(resource, call.principal, call.target, call.body), call)
  },
  async clear({ records }, { route: { resource, field = '' }, principal, target }) {
    await records.update(resource, principal, target, {}, field)
  },
  async delete({ records }, { route: { resource }, principal, target }) {
    await records.remove(resource, principal, target)
  },
  async put_module({ modules }, call) {
    return modules.put(moduleOf(call), call.body as ModuleConfig, call.links.to)
  },
  async get_module({ modules }, call) {
    return modules.get(moduleOf(call), call.links.to)
  },
  async delete_module({ modules }, call) {
    await modules.remove(moduleOf(call))
  },

  async list_present({ presence, groupsOf }, { route: { resource }, page, links, turn }) {
    // Each tunnel shows all groups that it is in.
    if (resource === tunnels) await turn()
    const found = await presentKind(resource).page(presence, oneMore(page), { links, groupsOf })
    return pageOf(found, resource, page, links)
  },
  async get_present({ presence, groupsOf }, { route: { resource }, target, links }) {
    return there(resource, await presentKind(resource).one(presence, target.id, { links, groupsOf }))
  },
  async command({ presence }, { route: { resource, command }, target }) {
    there(resource, await presence.session(target.id))
    if (command) await presence.command(target.id, command)
  },

  async list_logins({ logins, groupsOf }, { route: { resource }, page, links }) {
    const found = await logins.read((all) => loginKind(resource).page(all, oneMore(page), { links, groupsOf }))
    return pageOf(found, resource, page, links)
  },
  async get_login({ logins, groupsOf }, { route: { resource }, target, links }) {
    return there(resource, await logins.read((all) => loginKind(resource).one(all, target.id, { links, groupsOf })))
  },
  async end_login({ logins }, { route: { resource }, target }) {
    const isEnded = await (resource === applicationUsers ? logins.revokeUser(target.id) : logins.revoke(target.id))
    if (!isEnded) throw missing(resource)
  },

  async start_capture({ captures }, call) {
    return show(call.route.resource, await captures.create(call.principal, call.body), call)
  },
  async end_capture({ captures }, { principal, target }) {
    await captures.remove(principal, target)
  },
  ...exchangeOperations,

  renew: ({ renew }, { principal, target }) => renew(principal, target),
  retry: ({ retry }, { route: { resource }, principal, target }) => retry(principal, resource, target),
  async explain_policy({ explanations }, { principal, body }) {
    return explanations.explain(principal, body)
  },
  get_traffic_minutes: ({ traffic }) => traffic('minutes'),
  get_traffic_day: ({ traffic }) => traffic('day'),
  list_broken_edges: ({ brokenEdges }) => brokenEdges(),
}

function moduleOf({ route, principal, target }: CheckedCall): ModuleTarget {
  const { resource, module, form } = route
  if (!module || !form) throw new Error('a module route names its module and form')
  return { resource, principal, target, module, form }
}
