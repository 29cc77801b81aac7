/** `add-headers`: adds headers to the request or to the response; `host` is replaced. */
import { checkHeaders } from '../../../../model/header-rules.ts'
import { defineAction } from '../action.ts'
import { closedObject, headerMap, headerValue } from '../phase-settings.ts'

export const addHeaders = defineAction({
  phases: ['request', 'response'],
  sources: { headers: 'template' },
  config: closedObject({ headers: headerMap('Headers to add, by name; `host` is replaced.', 1) }),
  refine: ({ headers }, at) => checkHeaders(`${at}.headers`, headers),
  compile: ({ headers }, { site, template }) => {
    const added = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), template(value)] as const)
    return {
      run(moment) {
        for (const [name, value] of added) {
          const text = headerValue(value.text(moment))
          if (site.phase === 'response') moment.response?.headers.add(name, text)
          else if (name !== 'host') moment.change((list) => list.add(name, text))
          else if (moment.request) moment.request.replacedHost = checkedHost(text)
        }
        return undefined
      },
    }
  },
})

/** Values of the visitor may be part of it, so it is checked for each request. */
function checkedHost(text: string): string {
  if (/^(?:\[[\da-f:.]+\]|[\w.-]+)(?::\d{0,5})?$/i.test(text)) return text
  throw new Error('add-headers gives a `host` that is not a host')
}
