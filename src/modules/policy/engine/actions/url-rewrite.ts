/** `url-rewrite`: changes the URL that goes upstream; the visitor does not see it. */
import { defineAction } from '../action.ts'
import { closedObject, MAX_HEAD_LENGTH, text } from '../phase-settings.ts'
import { compileReplace } from '../replace-pattern.ts'
import { urlOf } from '../request-url.ts'

export const urlRewrite = defineAction({
  phases: ['request'],
  readsPath: () => true,
  sources: { from: 'pattern', to: 'template' },
  config: closedObject({
    from: text(1024, 'RE2 pattern of what to replace in the URL, at each occurrence.'),
    to: text(4096, 'Replacement; `$1` is the first group of `from`.'),
  }),
  compile: ({ from, to }, { template }) => {
    const replace = compileReplace(from, from.includes('${') ? template(from) : undefined, template(to))
    return {
      run(moment) {
        const { request } = moment
        const before = urlOf(moment)
        const after = replace(before, moment)
        if (!request || after === before) return undefined
        // Characters that a URL cannot hold are escaped; a text that is not a URL at all is a fault of the rule.
        const url = URL.parse(after)
        if (!url || !/^https?:$/.test(url.protocol)) throw new Error('url-rewrite gives something that is not a URL')
        // Escapes may make it longer.
        if (url.href.length > MAX_HEAD_LENGTH) throw new Error('url-rewrite gives a URL that is too long')
        request.replacedTarget = `${url.pathname}${url.search}`
        if (url.host !== new URL(before).host) request.replacedHost = url.host
        return undefined
      },
    }
  },
})
