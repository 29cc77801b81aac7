/** `custom-response`: answers instead of the upstream. */
import { Type } from '../../../../lib/shape/type.ts'
import { checkHeaders } from '../../../../model/header-rules.ts'
import { defineAction } from '../action.ts'
import { badSetting, closedObject, compileHeaders, headerMap } from '../phase-settings.ts'

const MAX_BODY_BYTES = 64 * 1024

export const customResponse = defineAction({
  phases: ['request', 'response'],
  ends: true,
  guards: true,
  sources: { body: 'template', content: 'template', headers: 'template' },
  config: closedObject({
    status_code: Type.Integer({ default: 200, minimum: 200, maximum: 599, description: 'Status of the response.' }),
    body: Type.Optional(Type.String({ maxBytes: MAX_BODY_BYTES, description: 'Body of the response.' })),
    content: Type.Optional(Type.String({ maxBytes: MAX_BODY_BYTES, description: 'The older name of `body`.' })),
    headers: Type.Optional(headerMap('Headers of the response, by name.')),
  }),
  refine: ({ body, content, headers = {} }, at) => {
    if (body !== undefined && content !== undefined) {
      throw badSetting(`${at}.content`, 'is the older name of `body`, which is given too; keep `body` only')
    }
    checkHeaders(`${at}.headers`, headers)
  },
  compile: ({ status_code, body, content, headers = {} }, { template }) => {
    const text = template(body ?? content ?? '')
    const given = compileHeaders(headers, template)
    const hasType = Object.keys(headers).some((name) => name.toLowerCase() === 'content-type')
    return {
      run(moment) {
        const filled = text.text(moment)
        const pairs = given(moment)
        const own = hasType || filled === '' ? pairs : [['content-type', typeOf(filled)] as const, ...pairs]
        return { respond: { status: status_code, headers: own, body: hasNoBody(status_code) ? '' : filled } }
      },
    }
  },
})

/** RFC 9110 §6.4.1 */
function hasNoBody(status: number): boolean {
  return status === 204 || status === 205 || status === 304
}

/** Guesses the content type of a body for which the settings name none. */
function typeOf(body: string): string {
  const start = body.slice(0, 100).trimStart().toLowerCase()
  if (start.startsWith('<!doctype html') || start.startsWith('<html')) return 'text/html; charset=utf-8'
  if (start.startsWith('{') || start.startsWith('[')) return 'application/json'
  return 'text/plain; charset=utf-8'
}
