/** The form that `request_headers` and `response_headers` share: headers to remove, and headers to add. */
import { Type } from '../../lib/shape/type.ts'
import { refuseRepeats } from '../../model/fields.ts'
import { badHeader, checkHeaderName, checkHeaders, headerPrice } from '../../model/header-rules.ts'
import { defineModule, moduleForm } from '../module.ts'
import { countVariables, MAX_VARIABLES } from '../templates/template-pieces.ts'

/** */
export const MAX_HEADERS = 100
export const MAX_NAME_BYTES = 256
export const MAX_VALUE_BYTES = 4096

interface HeaderModule {
  readonly name: string
  readonly about: string
  /** What happens to an added header that exists already, as a sentence. */
  readonly adding: string
  /** Gets a lower-case name and all names that are added; returns a reason if the header must not be removed. */
  readonly kept: (name: string, added: ReadonlySet<string>, at: string) => string | undefined
}

/** Defines a module that changes headers. */
export function headerModule({ name, about, adding, kept }: HeaderModule) {
  const form = moduleForm({
    add: Type.Record(Type.String(), Type.String({ maxBytes: MAX_VALUE_BYTES }), {
      default: {},
      maxProperties: MAX_HEADERS,
      maxKeyBytes: MAX_NAME_BYTES,
      description: `Headers to add, by name. ${adding}`,
    }),
    remove: Type.Array(Type.String({ maxBytes: MAX_NAME_BYTES }), {
      default: [],
      maxItems: MAX_HEADERS,
      description: 'Names of headers to remove, in any case. Removing comes before adding.',
    }),
  })
  return defineModule({
    name,
    about,
    at: { route: form },
    needs: () => 'http',
    accept(config, { at }) {
      const { add, remove } = config
      checkHeaders(`${at}add`, add)
      const excess = firstTooMany(Object.entries(add))
      if (excess !== undefined) throw badHeader(`${at}add[${JSON.stringify(excess)}]`, TOO_MANY_VARIABLES)
      const added = new Set(Object.keys(add).map((each) => each.toLowerCase()))
      for (const [i, each] of remove.entries()) {
        const field = `${at}remove[${i}]`
        checkHeaderName(field, each)
        const reason = kept(each.toLowerCase(), added, at)
        if (reason !== undefined) throw badHeader(field, reason)
      }
      refuseRepeats(`${at}remove`, remove, (each) => each.toLowerCase())
      return config
    },
    price: ({ add }) => Object.values(add).reduce((sum, value) => sum + headerPrice(value), 0),
    resolve: ({ add, remove }): HeaderSettings => ({ add: Object.entries(add), remove }),
  })
}

export interface HeaderSettings {
  /** Names and values, which may hold `${…}`. Each adds one value to the header of that name. */
  readonly add: readonly (readonly [name: string, value: string])[]
  /** Names, in any case. */
  readonly remove: readonly string[]
}

/** What is wrong with the header that `firstTooMany` finds. */
export const TOO_MANY_VARIABLES = `brings the values to over ${MAX_VARIABLES} \`\${…}\` in all; use fewer`

/** The first header whose value takes the total of `${…}` over the limit. */
export function firstTooMany(add: HeaderSettings['add']): string | undefined {
  let left = MAX_VARIABLES
  for (const [name, value] of add) {
    left -= countVariables(value)
    if (left < 0) return name
  }
  return undefined
}
