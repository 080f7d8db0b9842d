#undef MEET
#undef EACH_X
#undef EACH_GROUP
#undef EXACT_SUM
#undef QUANTISE_ROW
