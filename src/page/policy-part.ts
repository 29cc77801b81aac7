/** Which fields of a form are parts of a policy, so that its words can be offered there. */

export type PolicyPart = 'expression' | 'action'

/** `path` is that of the field in its form, such as `inbound[0].actions[1].type`. */
export function policyPartAt(path: string): PolicyPart | undefined {
  if (/(^|\.)(in|out)bound\[\d+\]\.expressions\[\d+\]$/.test(path)) return 'expression'
  return /(^|\.)(in|out)bound\[\d+\]\.actions\[\d+\]\.type$/.test(path) ? 'action' : undefined
}
