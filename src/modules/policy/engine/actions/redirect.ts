/** `redirect`: sends the visitor to another URL, unless that is the requested one. */
import { Type } from '../../../../lib/shape/type.ts'
import { checkHeaders } from '../../../../model/header-rules.ts'
import { defineAction } from '../action.ts'
import { closedObject, compileHeaders, headerMap, headerValue, text } from '../phase-settings.ts'
import { compileReplace } from '../replace-pattern.ts'
import { urlOf } from '../request-url.ts'

export const redirect = defineAction({
  phases: ['request'],
  guards: true,
  readsPath: () => true,
  sources: { from: 'pattern', to: 'template', headers: 'template' },
  config: closedObject({
    from: Type.Optional(text(1024, 'RE2 pattern of what to replace in the URL; the whole URL when left out.')),
    to: text(4096, 'Replacement; `$1` is the first group of `from`.'),
    status_code: Type.Integer({ default: 302, minimum: 300, maximum: 399, description: 'Status of the response.' }),
    headers: Type.Optional(headerMap('Headers of the response, by name.')),
  }),
  refine: ({ headers = {} }, at) => checkHeaders(`${at}.headers`, headers),
  compile: ({ from, to, status_code, headers = {} }, { template }) => {
    const replace = compileReplace(from, from?.includes('${') ? template(from) : undefined, template(to))
    const given = compileHeaders(headers, template)
    return {
      run(moment) {
        const url = urlOf(moment)
        const location = replace(url, moment)
        moment.results.set('redirect', new Map([['redirected', location !== url]]))
        if (location === url) return undefined
        const pairs = [['location', headerValue(location)] as const, ...given(moment)]
        return { respond: { status: status_code, headers: pairs, body: '' } }
      },
    }
  },
})
