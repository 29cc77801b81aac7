/** The `request_headers` module: headers removed from and added to a request before it goes upstream. */
import { type Static, Type } from 'typebox'
import { BadValue } from '../../lib/check.ts'
import { isConnectionHeader, isHeaderName, isHeaderValue } from '../../lib/http-header.ts'
import { enabled, refuseRepeats } from '../fields.ts'
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
    const added = new Map<string, string>()
    for (const [name, value] of Object.entries(add)) {
      const field = `${at}add[${JSON.stringify(name)}]`
      checkName(field, name)
      checkAdded(field, name, value)
      const before = added.get(name.toLowerCase())
      if (before !== undefined) throw bad(field, `names the same header as \`${before}\`; keep one of them`)
      added.set(name.toLowerCase(), name)
    }
    for (const [i, name] of remove.entries()) {
      const field = `${at}remove[${i}]`
      checkName(field, name)
      if (name.toLowerCase() === 'host' && !added.has('host')) {
        throw bad(field, `removes \`host\`, which every request needs; put a new value into \`${at}add\` too`)
      }
    }
    refuseRepeats(`${at}remove`, remove, (name) => name.toLowerCase())
    return config
  },
}

function checkName(field: string, name: string): void {
  if (!isHeaderName(name)) {
    throw bad(field, "is not a header name: use letters, digits and the characters !#$%&'*+-.^_`|~ only")
  }
  if (isConnectionHeader(name)) {
    throw bad(field, 'names a header that belongs to the connection, which the edge writes itself')
  }
  if (name.toLowerCase() === 'user-agent') throw bad(field, 'names `user-agent`, which cannot be changed')
}

function checkAdded(field: string, name: string, value: string): void {
  // D42b: an upstream trusts these names because only the edge sets them.
  if (name.toLowerCase().startsWith('postern-')) {
    throw bad(field, 'begins with `postern-`, which is kept for headers that the edge sets; choose another name')
  }
  if (!isHeaderValue(value)) {
    throw bad(field, 'has a value with a line break or another control character; remove it')
  }
}

function bad(field: string, what: string): BadValue {
  return new BadValue(field, 'value', `\`${field}\` ${what}`)
}
