/** Tells all modules the outcome of a request, even when one throws. */
import type { Logger } from '../../../lib/log/create-log.ts'
import type { RequestContext, Summary } from '../../../modules/phases.ts'
import type { Route } from '../compiled-edge.ts'

export function tellDone(route: Route, summary: Summary, ctx: RequestContext, log: Logger): void {
  for (const phase of route.done) {
    try {
      phase(summary, ctx)
    } catch (error) {
      log.error({ edge: ctx.edgeId, route: route.id, err: error }, 'module failed after a request')
    }
  }
}
