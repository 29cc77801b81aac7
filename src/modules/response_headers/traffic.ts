/**
 * Changes the headers of a response on its way to the visitor.
 *
 * @example
 * const phases = compileResponseHeaders({ add: [['x-region', '${conn.server_region}']], remove: ['server'] }, tools)
 * const answer = response({ headers: { server: 'nginx' } })
 * phases.response(answer, request())
 * answer.headers.get('server') // undefined
 * answer.headers.get('x-region') // 'local'
 */

import { compileHeaderChanges } from '../headers/header-changes.ts'
import type { HeaderSettings } from '../headers/header-form.ts'
import type { Phases } from '../phases.ts'
import type { ModuleTools } from '../tools.ts'

export function compileResponseHeaders(
  { add, remove }: HeaderSettings,
  tools: Pick<ModuleTools, 'now' | 'region'>,
): Phases {
  const change = compileHeaderChanges({ add, remove })
  return {
    removesFromResponse: remove.map((name) => name.toLowerCase()),
    response(incoming, ctx) {
      change(incoming.headers, { ctx, incoming, tools })
    },
  }
}
