/** The words that a policy can use: its actions, and the variables and functions of its expressions. */
import { actionNames } from './engine/actions.ts'
import { functions, macros, methods } from './engine/functions.ts'
import { ownLists } from './engine/policy-phases.ts'
import type { Shape } from './engine/policy-shape.ts'
import { variables } from './engine/variables.ts'

/** The words of routes, which include those of all other places. */
export function policyWords() {
  const shapes = variables({ place: 'route', phase: 'response', lists: ownLists })
  return {
    actions: actionNames,
    /** With their fields: `req.url.path`. */
    variables: Object.entries(shapes).flatMap(([name, shape]) => paths(name, shape)),
    /** Those that are called on a value begin with a dot: `.startsWith`. */
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
