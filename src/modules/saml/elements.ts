/** Finds elements in parsed documents. */
import type { XmlElement } from './xml.ts'

export function isNamed(element: XmlElement, namespace: string, name: string): boolean {
  return element.namespace === namespace && element.name === name
}

/** Children of a name. */
export function childrenOf({ children }: XmlElement, namespace: string, name: string): XmlElement[] {
  return children.filter((child) => isNamed(child, namespace, name))
}

/** The one child of this name; undefined when there is none, or more than one. */
export function onlyChild(element: XmlElement, namespace: string, name: string): XmlElement | undefined {
  const [child, another] = childrenOf(element, namespace, name)
  return another ? undefined : child
}

/** An element and all its descendants, each with its parent; outermost first. */
export function* everyElement(
  root: XmlElement,
  parent?: XmlElement,
): Generator<{ readonly element: XmlElement; readonly parent: XmlElement | undefined }> {
  yield { element: root, parent }
  for (const child of root.children) yield* everyElement(child, root)
}
