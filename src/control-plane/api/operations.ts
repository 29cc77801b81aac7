/** Carries out each action of the route table, after the caller, the path, the query and the body were checked. */

import { othersTurn } from '../../lib/threads/others-turn.ts'
import type { Presence } from '../../model/presence.ts'
import type { ModuleConfig } from '../../modules/module.ts'
import type { EdgeModules, ModuleTarget } from '../records/edge-modules.ts'
import { type Logins, loginOne, loginPage } from '../records/listed-logins.ts'
import type { CaptureControl } from '../records/managed-captures.ts'
import { type Presenting, presentOne, presentPage } from '../records/online-lists.ts'
import type { Records } from '../records/records.ts'
import type { Renewals } from '../records/renewals.ts'
import { show } from '../records/show-resource.ts'
import { captures } from '../resources/captures.ts'
import type { Fields } from '../resources/resource.ts'
import type { Explanations } from '../traffic/explanations.ts'
import type { Period } from '../traffic/traffic-counts.ts'
import type { CheckedCall } from './checked-call.ts'
import { envelope, missing, pageOf } from './list-page.ts'
import { type PassedTraffic, whatPassed } from './passed-traffic.ts'
import type { RouteAction } from './routes.ts'

export interface Behind extends PassedTraffic {
  readonly records: Records
  readonly modules: EdgeModules
  readonly presence: Presence
  readonly logins: Logins
  readonly renewals: Renewals
  readonly captures: Pick<CaptureControl, 'create' | 'remove'>
  readonly explanations: Pick<Explanations, 'explain'>
  readonly traffic: (period: Period) => Promise<Fields>
  readonly brokenEdges: () => Promise<Fields>
  /** Ids of the tunnel groups that a tunnel with these labels serves. */
  readonly groupsOf: Presenting['groupsOf']
}

/** Runs the action of a call's route and returns the body of the answer; undefined where it has none. */
export function perform(behind: Behind, call: CheckedCall): Promise<unknown> {
  switch (call.route.resource.source) {
    case 'presence':
      return onPresence(behind, call)
    case 'logins':
      return onLogins(behind, call)
    case 'traffic':
      return (call.route.resource === captures ? onCaptures : whatPassed)(behind, call)
    case 'dry_run':
    case 'numbers':
    case 'store':
      return actions[call.route.action](behind, call)
  }
}

const actions: Record<RouteAction, (behind: Behind, call: CheckedCall) => Promise<unknown>> = {
  async create({ records }, call) {
    const { resource } = call.route
    return show(resource, await records.create(resource, call.principal, call.body, call.parentId), call)
  },
  async list({ records }, call) {
    const { resource } = call.route
    const { records: found, hasMore } = await records.list(resource, call.principal, call.page)
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
    return show(resource, await records.get(resource, call.principal, call.target), call)
  },
  async update({ records }, call) {
    const { resource } = call.route
    return show(resource, await records.update(resource, call.principal, call.target, call.body), call)
  },
  async clear({ records }, { route: { resource, field = '' }, principal, target }) {
    await records.update(resource, principal, target, {}, field)
  },
  async delete({ records }, { route: { resource }, principal, target }) {
    await records.remove(resource, principal, target)
  },
  async put_module({ modules }, call) {
    const target = moduleOf(call)
    const config = await modules.put(target, call.body as ModuleConfig)
    return target.form.show(config, call.links.to, await modules.shownAt(target))
  },
  async get_module({ modules }, call) {
    const target = moduleOf(call)
    const config = await modules.get(target)
    return target.form.show(config, call.links.to, await modules.shownAt(target))
  },
  async delete_module({ modules }, call) {
    await modules.remove(moduleOf(call))
  },
  async explain({ explanations }, { principal, body }) {
    return explanations.explain(principal, body)
  },
  async traffic({ traffic }, { route: { period = 'minutes' } }) {
    return traffic(period)
  },
  async renew({ renewals }, { principal, target }) {
    await renewals.ask(principal, target)
  },
  async broken({ brokenEdges }) {
    return brokenEdges()
  },
  replay: onlyForExchanges,
  stream: onlyForExchanges,
  har: onlyForExchanges,
  curl: onlyForExchanges,
  async command() {
    throw new Error('only resources that are online take commands')
  },
}

async function onlyForExchanges(): Promise<never> {
  throw new Error('only exchanges have this action')
}

/** What is online comes from presence, not from the store. */
async function onPresence(
  { presence, groupsOf }: Behind,
  { route, target, page, links }: CheckedCall,
): Promise<unknown> {
  const { resource, action, command } = route
  if (command) {
    if (!(await presence.session(target.id))) throw missing(resource)
    await presence.command(target.id, command)
    return undefined
  }
  if (action === 'list') {
    // One more than the limit shows whether there is a next page.
    const found = await presentPage(presence, resource, { ...page, limit: page.limit + 1 }, { links, groupsOf })
    return pageOf(found, resource, page, links)
  }
  const one = await presentOne(presence, resource, target.id, { links, groupsOf })
  if (!one) throw missing(resource)
  return one
}

/** Captures are stored, but starting or ending one takes more than writing a row. */
async function onCaptures(behind: Behind, call: CheckedCall): Promise<unknown> {
  const { route, principal, body, target } = call
  if (route.action === 'create') {
    return show(captures, await behind.captures.create(principal, body), call)
  }
  if (route.action === 'delete') return behind.captures.remove(principal, target)
  return actions[route.action](behind, call)
}

/** Logins are read from the store; deleting one ends it at once. */
async function onLogins({ logins }: Behind, { route, target, page, links }: CheckedCall): Promise<unknown> {
  const { resource, action } = route
  if (action === 'list') {
    const found = await loginPage(logins, resource, { ...page, limit: page.limit + 1 }, links)
    return pageOf(found, resource, page, links)
  }
  if (action === 'delete') {
    if (!(await logins.revoke(resource, target.id))) throw missing(resource)
    return undefined
  }
  const one = await loginOne(logins, resource, target.id, links)
  if (!one) throw missing(resource)
  return one
}

function moduleOf({ route, principal, target }: CheckedCall): ModuleTarget {
  const { resource, module, form } = route
  if (!module || !form) throw new Error('a module route names its module and form')
  return { resource, principal, target, module, form }
}
