/** The words that a policy can use: its actions, and the variables and functions of its expressions. */
import { actionNames } from './engine/action-names.ts'
import { functions, macros, methods } from './engine/functions.ts'
import { ownLists } from './engine/policy-phases.ts'
import type { Shape } from './engine/policy-shape.ts'
import { variables } from './engine/variables.ts'

interface PolicyWords {
  readonly actions: readonly string[]
  /** With their fields: `req.url.path`. */
  readonly variables: readonly string[]
  /** Those that are called on a value begin with a dot: `.startsWith`. */
  readonly functions: readonly string[]
}

/** The words of routes, which include those of all other places. */
export function policyWords(): PolicyWords {
  const shapes = variables({ place: 'route', phase: 'response', lists: ownLists })
  return {
    actions: actionNames,
    variables: Object.entries(shapes).flatMap(([name, shape]) => paths(name, shape)),
    functions: [...Object.keys(functions), ...[...Object.keys(methods), ...Object.keys(macros)].map(asMethod)],
  }
}

function paths(name: string, { kind, fields = {} }: Shape): string[] {
  if (kind === 'absent') return []
  return [name, ...Object.entries(fields).flatMap(([field, shape]) => paths(`${name}.${field}`, shape))]
}

/** `has` alone is written like a function. */
function asMethod(name: string): string {
  return name === 'has' ? name : `.${name}`
}
