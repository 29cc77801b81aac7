/** Makes untrusted text safe to show: no invisible characters, no change of direction, no endless length. */

/** Controls, direction marks, characters without a width or a shape, and lone surrogates. */
const INVISIBLE = /(?![\n\t])[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\u115f\u1160\u3164]/gu

/** Each invisible character as its number: `‹U+202E›`. */
export function visibleText(text: string): string {
  return text.replace(INVISIBLE, (found) => {
    const number = found.codePointAt(0) ?? 0
    return `‹U+${number.toString(16).toUpperCase().padStart(4, '0')}›`
  })
}

/** The first `most` characters of a text, made visible, and how many are left; no character is cut in two. */
export function cutText(text: string, most: number) {
  if (text.length <= most) return { text: visibleText(text), left: 0 }
  const isPair = /[\ud800-\udbff]/.test(text.charAt(most - 1))
  const end = isPair ? most - 1 : most
  return { text: visibleText(text.slice(0, end)), left: text.length - end }
}
