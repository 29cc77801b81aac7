/**
 * Changes the headers of a request on its way upstream; an added `host` replaces the visitor's.
 *
 * @example
 * const phases = compileRequestHeaders({ add: [['x-client', '${conn.client_ip}']], remove: ['cookie'] }, tools)
 * const ctx = request({ headers: { cookie: 'a=b' } })
 * phases.upstream({ headers: ctx.headers }, ctx)
 * ctx.headers.get('cookie') // undefined
 * ctx.headers.get('x-client') // '192.0.2.7'
 */
import { compileHeaderChanges, render } from '../headers/header-changes.ts'
import type { HeaderSettings } from '../headers/header-form.ts'
import type { Phases } from '../phases.ts'
import { compileTemplate } from '../templates/templates.ts'
import type { ModuleTools } from '../tools.ts'

export function compileRequestHeaders(
  { add, remove }: HeaderSettings,
  tools: Pick<ModuleTools, 'now' | 'region'>,
): Phases {
  const isHost = (name: string): boolean => name.toLowerCase() === 'host'
  const host = add.findLast(([name]) => isHost(name))?.[1]
  const hostTemplate = host === undefined ? undefined : compileTemplate(host)
  const removed = remove.map((name) => name.toLowerCase()).filter((name) => name !== 'host')
  const change = compileHeaderChanges({ add: add.filter(([name]) => !isHost(name)), remove: removed })
  return {
    removesFromRequest: removed,
    upstream({ headers }, ctx) {
      const moment = { ctx, incoming: undefined, tools }
      change(headers, moment)
      if (hostTemplate === undefined) return
      // A request must have a host, so an empty value replaces nothing.
      ctx.replacedHost = render(hostTemplate, moment).replace(/[^\x21-\x7e]/g, '') || ctx.replacedHost
    },
  }
}
