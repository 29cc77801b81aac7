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

import { isEdgeHeader } from '../../model/header-rules.ts'
import { compileHeaderChanges } from '../headers/header-changes.ts'
import type { HeaderSettings } from '../headers/header-form.ts'
import type { Phases } from '../phases.ts'
import type { ModuleTools } from '../tools.ts'

export function compileResponseHeaders(
  { add, remove }: HeaderSettings,
  tools: Pick<ModuleTools, 'now' | 'region'>,
): Phases {
  const removed = remove.map((name) => name.toLowerCase()).filter((name) => !isEdgeHeader(name))
  const change = compileHeaderChanges({ add: add.filter(([name]) => !isEdgeHeader(name)), remove: removed })
  return {
    removesFromResponse: removed,
    response(incoming, ctx) {
      // error pages of the edge stay as they are, and only they have this header.
      if (incoming.headers.has('postern-error-code')) return
      change(incoming.headers, { ctx, incoming, tools })
    },
  }
}
