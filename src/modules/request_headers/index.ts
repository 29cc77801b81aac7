/** The `request_headers` module: headers removed from and added to a request before it goes upstream. */
import { type Static, Type } from 'typebox'
import { enabled, refuseRepeats } from '../fields.ts'
import { badHeader, checkHeaderName, checkHeaders } from '../header-rules.ts'
import type { Module } from '../module.ts'

/** */
const MAX_HEADERS = 100
const MAX_NAME_BYTES = 256
const MAX_VALUE_BYTES = 4096

const form = Type.Object(
  {
    enabled,
    add: Type.Record(Type.String(), Type.String({ maxBytes: MAX_VALUE_BYTES }), {
      default: {},
      maxProperties: MAX_HEADERS,
      maxKeyBytes: MAX_NAME_BYTES,
      description: 'Headers to add, by name. A header that is there already gets one more value; `host` is replaced.',
    }),
    remove: Type.Array(Type.String({ maxBytes: MAX_NAME_BYTES }), {
      default: [],
      maxItems: MAX_HEADERS,
      description: 'Names of headers to remove, in any case. Removing comes before adding.',
    }),
  },
  { additionalProperties: false },
)

export const requestHeaders: Module = {
  name: 'request_headers',
  about: 'Removes headers from a request and adds others before it goes upstream.',
  at: { route: form },
  needs: () => 'http',
  accept: (config, { at }) => {
    // The form was checked before, so the value has its shape.
    const { add, remove } = config as Static<typeof form>
    checkHeaders(`${at}add`, add)
    const addsHost = Object.keys(add).some((name) => name.toLowerCase() === 'host')
    for (const [i, name] of remove.entries()) {
      const field = `${at}remove[${i}]`
      checkHeaderName(field, name)
      if (name.toLowerCase() === 'host' && !addsHost) {
        throw badHeader(field, `removes \`host\`, which every request needs; put a new value into \`${at}add\` too`)
      }
    }
    refuseRepeats(`${at}remove`, remove, (name) => name.toLowerCase())
    return config
  },
}
