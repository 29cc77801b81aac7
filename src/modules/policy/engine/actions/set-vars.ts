/** `set-vars`: sets variables that the rules after it read as `vars.name`. */
import { Type } from '../../../../lib/shape/type.ts'
import { defineAction } from '../action.ts'
import { compileDocument } from '../document-template.ts'
import { badSetting, closedObject } from '../phase-settings.ts'

export const setVars = defineAction({
  phases: ['request', 'response'],
  sources: { vars: 'template' },
  config: closedObject({
    vars: Type.Array(
      Type.Record(Type.String(), Type.Unknown(), { minProperties: 1, maxProperties: 1, maxKeyBytes: 64 }),
      {
        minItems: 1,
        maxItems: 20,
        description: 'Variables to set, in order, each as an object of one name and its value; read as `vars.name`.',
      },
    ),
  }),
  refine: ({ vars }, at) => {
    for (const [i, name] of vars.flatMap(Object.keys).entries()) {
      if (!/^[A-Za-z_]\w*$/.test(name))
        throw badSetting(`${at}.vars[${i}]`, 'must name its variable with letters, digits and `_`')
    }
  },
  compile: ({ vars }, { template }) => {
    // Values keep the kind that an expression gave them, so that a number can be compared with one.
    const set = vars
      .flatMap((each) => Object.entries(each))
      .map(([name, value]) => [name, compileDocument(integers(value), template, (given) => given)] as const)
    return {
      run(moment) {
        for (const [name, value] of set) moment.vars.set(name, value(moment))
        return undefined
      },
    }
  },
})

/** Converts whole numbers of a document to integers, as expressions have them. */
function integers(value: unknown): unknown {
  if (typeof value === 'number' && Number.isSafeInteger(value)) return BigInt(value)
  if (Array.isArray(value)) return value.map(integers)
  if (typeof value === 'object' && value !== null) {
    return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, integers(each)]))
  }
  return value
}
