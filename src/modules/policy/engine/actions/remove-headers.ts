/** `remove-headers`: removes headers from the request or from the response. */
import { checkHeaderName, isEdgeHeader } from '../../../../model/header-rules.ts'
import { defineAction } from '../action.ts'
import { closedObject, headerList } from '../phase-settings.ts'

export const removeHeaders = defineAction({
  phases: ['request', 'response'],
  config: closedObject({ headers: headerList('Names of headers to remove, in any case.') }),
  refine: ({ headers }, at) => {
    for (const [i, name] of headers.entries()) checkHeaderName(`${at}.headers[${i}]`, name)
  },
  compile: ({ headers }, { site }) => {
    // Services rely on the headers that the edge writes itself, so no rule can remove them.
    const removed = new Set(headers.map((name) => name.toLowerCase()).filter((name) => !isEdgeHeader(name)))
    return {
      run(moment) {
        if (site.phase === 'response') moment.response?.headers.removeWhere(({ key }) => removed.has(key))
        else moment.change((list) => list.removeWhere(({ key }) => removed.has(key)))
        return undefined
      },
    }
  },
})
