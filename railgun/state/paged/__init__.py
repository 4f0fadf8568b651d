"""State of variable size: pages in bounded memory, and the trees and strings in them."""
